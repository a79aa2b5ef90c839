/** Private keys as files hold them: PEM, OpenSSH, PGP, PuTTY. A key is told by its first line and its body. */
import type { Secret } from './found.js';

const HEADER = /-{4,5} ?BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}|PuTTY-User-Key-File-\d/g;
/** Between the two may stand a few headers, a comment, marks of a quote, and line ends written as `\n`. */
const BODY = /[A-Za-z0-9+/]{12,}={0,2}/;
const REACH = 600;

export function privateKeys(text: string): Secret[] {
  return [...text.matchAll(HEADER)].flatMap((header) => {
    const start = header.index + header[0].length;
    const after = text.slice(start, start + REACH).replaceAll('\\n', '\n');
    const body = BODY.exec(after.split('-----')[0] ?? '');
    return body === null ? [] : [{ kind: 'a private key', at: header.index, value: body[0] }];
  });
}
