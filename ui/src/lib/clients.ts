// Clients as they are named in lists: a name is only claimed, so its program goes with it.

import { visible } from './output/hostile';

/** Of the window's own runs. No client may have it, nor one that looks like it. */
const OWN_NAME = 'Sandtray';

export interface Who {
  client: string;
  program: string | null;
}

/** Of this window. */
export function isOwn({ client, program }: Who): boolean {
  return client === OWN_NAME && program === null;
}

/** What stands beside a client's name: its program, or what is known instead; nothing where both are the same word. */
export function besideOf({ client, program }: Who): string | null {
  if (isOwn({ client, program })) return 'this window';
  return program === client ? null : (program ?? 'unknown program');
}

/** In one line of text, where there is no room for more. */
export function whoText(who: Who, max = 60): string {
  const [name, beside] = [visible(who.client, max), besideOf(who)];
  return beside === null ? name : `${name} (${visible(beside, max)})`;
}

/** One name of one program, as the value of a choice. */
export function keyOf({ client, program }: Who): string {
  return JSON.stringify([client, program]);
}
