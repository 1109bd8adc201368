// Copies, and says what was left out.

import { copyText } from './ipc/client';
import { attempt, messages } from './state/messages.svelte';
import { copiedWords } from './words';

export async function tellCopied(text: string): Promise<void> {
  await attempt(copyText(text).then((leftOut) => messages.say(copiedWords(leftOut ?? 0))));
}
