// Clients as they are named in lists: a name is only claimed, so its program goes with it.

import { visible } from './output/hostile';

/** Of the window's own runs. No client may have it, nor one that looks like it. */
export const OWN_NAME = 'Sandtray';

export interface Who {
  client: string;
  program: string | null;
}

/** In one line of text, where there is no room for more. */
export function whoText({ client, program }: Who, max = 60): string {
  const name = visible(client, max);
  if (program === null) return client === OWN_NAME ? `${name} (this window)` : `${name} (unknown program)`;
  return program === client ? name : `${name} (${visible(program, max)})`;
}

/** One name of one program, as the value of a choice. */
export function keyOf({ client, program }: Who): string {
  return JSON.stringify([client, program]);
}
