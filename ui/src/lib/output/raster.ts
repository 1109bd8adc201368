// Decides which bytes may be shown as a picture: only a PNG that the app wrote itself. Pure.

const PNG = '\x89PNG\r\n\x1a\n';
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** A `data:` URL, or null for anything else. */
export function rasterUrl(base64: string): string | null {
  if (!BASE64.test(base64)) return null;
  let head: string;
  try {
    head = atob(base64.slice(0, 12));
  } catch {
    return null;
  }
  return head.startsWith(PNG) ? `data:image/png;base64,${base64}` : null;
}
