/** Endings of files by their MIME types. */

/** Subtypes, each with its endings unless that is its name; a file gets the first. */
const TYPES = {
  text:
    'markdown=md,markdown x-markdown=md plain=txt,text,log html=html,htm css csv tab-separated-values=tsv calendar=ics ' +
    'vcard=vcf xml javascript=js,mjs x-python=py x-shellscript=sh x-typescript=ts yaml=yaml,yml x-diff=diff,patch',
  application:
    'json jsonl=jsonl,ndjson ld+json=jsonld geo+json=geojson yaml=yaml,yml x-yaml=yaml toml xml javascript=js ' +
    'typescript=ts x-python=py x-sh=sh sql rtf x-tex=tex gpx+xml=gpx pdf zip gzip=gz x-tar=tar x-7z-compressed=7z ' +
    'epub+zip=epub msword=doc vnd.ms-excel=xls vnd.ms-powerpoint=ppt ' +
    'vnd.openxmlformats-officedocument.wordprocessingml.document=docx ' +
    'vnd.openxmlformats-officedocument.spreadsheetml.sheet=xlsx ' +
    'vnd.openxmlformats-officedocument.presentationml.presentation=pptx ' +
    'vnd.oasis.opendocument.text=odt vnd.oasis.opendocument.spreadsheet=ods vnd.oasis.opendocument.presentation=odp ' +
    'octet-stream=bin',
  image: 'svg+xml=svg png jpeg=jpg,jpeg gif webp avif heic tiff bmp',
  video: 'mp4 webm quicktime=mov x-matroska=mkv mpeg',
  audio: 'mpeg=mp3 ogg=ogg,opus opus wav x-wav=wav mp4=m4a x-m4a=m4a aac flac x-flac=flac webm 3gpp=3gp amr',
};

const ENDINGS = new Map(
  Object.entries(TYPES).flatMap(([kind, subtypes]) =>
    subtypes.split(' ').map((row): [string, string[]] => {
      const [subtype = '', endings = subtype] = row.split('=');
      return [`${kind}/${subtype}`, endings.split(',')];
    }),
  ),
);

/** An ending means the first type that lists it. */
const BY_ENDING = new Map(
  [...ENDINGS].reverse().flatMap(([type, endings]) => endings.map((ending) => [ending, type] as const)),
);

/** Ignores parameters: `text/csv; charset=utf-8` is `csv`. Unknown types are `bin`. */
export function endingOf(type: string): string {
  const [plain = ''] = type.split(';', 1);
  return ENDINGS.get(plain.trim().toLowerCase())?.[0] ?? 'bin';
}

/** By a file's ending. */
export function typeOf(name: string): string | undefined {
  const [, ending = ''] = /\.([A-Za-z0-9]+)$/.exec(name) ?? [];
  return BY_ENDING.get(ending.toLowerCase());
}
