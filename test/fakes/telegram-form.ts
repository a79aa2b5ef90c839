/** Forms with files, read the way the Bot API's server reads them: strictly, and with its own rules for names. */

export interface UploadedFile {
  name: string;
  type: string;
  bytes: Buffer;
}

/** A form that is not one; the server answers 400. */
export class MalformedForm extends Error {
  override readonly name = 'MalformedForm';
}

const HEADERS_END = '\r\n\r\n';

export function parseForm(
  contentType: string,
  body: Buffer,
): { fields: Map<string, string>; files: Map<string, UploadedFile> } {
  const boundary = /boundary=(?:"([^"]+)"|([^;\s]+))/.exec(contentType)?.slice(1).find(Boolean);
  if (boundary === undefined || boundary.length > 70) throw new MalformedForm('boundary not found');
  const fields = new Map<string, string>();
  const files = new Map<string, UploadedFile>();
  const first = Buffer.from(`--${boundary}`);
  const next = Buffer.from(`\r\n--${boundary}`);

  if (!body.subarray(0, first.length).equals(first)) throw new MalformedForm('it does not begin with a part');
  let at = first.length;
  while (body.toString('latin1', at, at + 2) !== '--') {
    if (body.toString('latin1', at, at + 2) !== '\r\n') throw new MalformedForm('a boundary goes on');
    const headersEnd = body.indexOf(HEADERS_END, at);
    const end = body.indexOf(next, headersEnd + HEADERS_END.length);
    if (headersEnd < 0 || end < 0) throw new MalformedForm('a part has no end');
    const headers = body.toString('utf8', at + 2, headersEnd);
    const bytes = body.subarray(headersEnd + HEADERS_END.length, end);
    const { name, filename } = dispositionOf(headers);
    if (name === undefined) throw new MalformedForm('field name in multipart/form-data not found');
    if (fields.has(name) || files.has(name)) throw new MalformedForm(`two parts are named ${name}`);
    if (filename === undefined) fields.set(name, bytes.toString('utf8'));
    else files.set(name, { name: filename, type: headerOf(headers, 'content-type'), bytes });
    at = end + next.length;
  }
  if (body.length > at + 4) throw new MalformedForm('something follows the end');
  return { fields, files };
}

/** What a header holds. Only a carriage return with a line feed ends it: names may hold other ends of lines. */
function headerOf(headers: string, name: string): string {
  const line = headers.split('\r\n').find((each) => each.toLowerCase().startsWith(`${name}:`));
  return line?.slice(name.length + 1).trim() ?? '';
}

function dispositionOf(headers: string): { name?: string; filename?: string } {
  const line = headerOf(headers, 'content-disposition');
  if (!line.startsWith('form-data;')) throw new MalformedForm('expected form-data content disposition');
  const found: Record<string, string> = {};
  // Quoted with escapes, or up to the next semicolon; in both, percent signs are undone.
  const pairs = /\s*([^=;]+?)\s*=\s*(?:"((?:[^"\\]|\\.)*)"\s*(?:;|$)|([^";][^;]*)(?:;|$))/gsy;
  const rest = line.slice('form-data;'.length);
  let read = 0;
  for (const [all, key = '', quoted, token] of rest.matchAll(pairs)) {
    found[key] = withoutPercents(quoted?.replace(/\\(.)/gs, '$1') ?? (token ?? '').trim());
    read += all.length;
  }
  if (read !== rest.length) throw new MalformedForm(`can't parse form data headers: ${line}`);
  return found;
}

function withoutPercents(text: string): string {
  const bytes = text
    .split(/(%[0-9a-f]{2})/i)
    .map((piece, index) => (index % 2 === 1 ? Buffer.from(piece.slice(1), 'hex') : Buffer.from(piece)));
  return Buffer.concat(bytes).toString('utf8');
}
