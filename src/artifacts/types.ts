/** Maps MIME types to file extensions and back. Pure. */

/** Types that models write, then those that commands leave. Of several extensions the first is used. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  'text/markdown': 'md markdown',
  'text/x-markdown': 'md',
  'text/plain': 'txt text log',
  'text/html': 'html htm',
  'text/css': 'css',
  'text/csv': 'csv',
  'text/tab-separated-values': 'tsv',
  'text/calendar': 'ics',
  'text/vcard': 'vcf',
  'text/xml': 'xml',
  'text/javascript': 'js mjs',
  'text/x-python': 'py',
  'text/x-shellscript': 'sh',
  'text/x-typescript': 'ts',
  'text/yaml': 'yaml yml',
  'text/x-diff': 'diff patch',
  'application/json': 'json',
  'application/jsonl': 'jsonl ndjson',
  'application/ld+json': 'jsonld',
  'application/geo+json': 'geojson',
  'application/yaml': 'yaml yml',
  'application/x-yaml': 'yaml',
  'application/toml': 'toml',
  'application/xml': 'xml',
  'application/javascript': 'js',
  'application/typescript': 'ts',
  'application/x-python': 'py',
  'application/x-sh': 'sh',
  'application/sql': 'sql',
  'application/rtf': 'rtf',
  'application/x-tex': 'tex',
  'application/gpx+xml': 'gpx',
  'application/pdf': 'pdf',
  'application/zip': 'zip',
  'application/gzip': 'gz',
  'application/x-tar': 'tar',
  'application/epub+zip': 'epub',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'pptx',
  'application/octet-stream': 'bin',
  'image/svg+xml': 'svg',
  'image/png': 'png',
  'image/jpeg': 'jpg jpeg',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'image/avif': 'avif',
  'audio/mpeg': 'mp3',
  'audio/ogg': 'ogg opus',
  'audio/wav': 'wav',
  'video/mp4': 'mp4',
  'video/webm': 'webm',
};

const BY_TYPE = new Map(
  Object.entries(EXTENSIONS).map(([type, endings]) => [type, endings.split(' ')[0] ?? 'bin']),
);
/** An extension means the first type that lists it. */
const BY_EXTENSION = new Map(
  Object.entries(EXTENSIONS)
    .reverse()
    .flatMap(([type, endings]) => endings.split(' ').map((ending) => [ending, type] as const)),
);

const USUAL = 'text/markdown';
const UNKNOWN = 'application/octet-stream';

/** `text/csv; charset=utf-8` is `csv`, like `text/csv`; unknown types are `bin`. */
export function extensionOf(type: string): string {
  const [plain = ''] = type.split(';', 1);
  return BY_TYPE.get(plain.trim().toLowerCase()) ?? 'bin';
}

/** For a file whose type was not stored. */
export function typeOfFile(name: string): string {
  return typeByEnding(name) ?? UNKNOWN;
}

/** null: the type is that of the id's own extension: `plan.csv`. */
export function typeFor(id: string, type: string | null): string {
  return type ?? typeByEnding(id) ?? USUAL;
}

function typeByEnding(name: string): string | undefined {
  const [, ending = ''] = /\.([A-Za-z0-9]+)$/.exec(name) ?? [];
  return BY_EXTENSION.get(ending.toLowerCase());
}

/** Display name: `plan.csv.csv` would look like a mistake. */
export function shownName(id: string, extension: string): string {
  return id.toLowerCase().endsWith(`.${extension}`) ? id : `${id}.${extension}`;
}
