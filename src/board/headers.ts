/** Headers that every answer has, and the page's policy. */
import type { ServerResponse } from 'node:http';

export const NO_STORE = 'no-store';

/** An answer is data unless it says otherwise: not kept, not guessed at, not used by pages of others, without rights. */
export const EVERYWHERE = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cache-control': NO_STORE,
};

/**
 * The page loads only its own files. It makes no HTML from strings, and a form that its script does not take goes
 * nowhere: the token would stand in the address. Frames are for documents that the page has in memory.
 */
export const OF_THE_PAGE = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "font-src 'self'",
    "connect-src 'self'",
    'frame-src blob:',
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
};

/** Whatever answers may replace them. */
export function prepare(response: ServerResponse): void {
  for (const [name, value] of Object.entries(EVERYWHERE)) response.setHeader(name, value);
}
