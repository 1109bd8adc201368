// Which bytes may be shown as a picture. The kinds that hold pixels only; never SVG, which holds programs. Pure.

const MAGIC: [string, (head: string) => boolean][] = [
  ['image/png', (head) => head.startsWith('\x89PNG\r\n\x1a\n')],
  ['image/jpeg', (head) => head.startsWith('\xff\xd8\xff')],
  ['image/gif', (head) => head.startsWith('GIF87a') || head.startsWith('GIF89a')],
  ['image/webp', (head) => head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP'],
];

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** A `data:` URL, or null where the bytes are no picture of a known kind, whatever the file is called. */
export function rasterUrl(base64: string): string | null {
  if (!BASE64.test(base64)) return null;
  let head: string;
  try {
    head = atob(base64.slice(0, 32));
  } catch {
    return null;
  }
  const kind = MAGIC.find(([, matches]) => matches(head));
  return kind ? `data:${kind[0]};base64,${base64}` : null;
}

/** Bytes that are not UTF-8, as far as they are text. */
export function looseText(base64: string): string {
  try {
    const raw = atob(base64);
    return new TextDecoder().decode(Uint8Array.from(raw, (unit) => unit.charCodeAt(0)));
  } catch {
    return '';
  }
}
