/** What kinds of files are called on the disk, and what a file is by its first bytes, whatever its sender says. Pure. */

/** Every extension that a file in the media folder may have, beside `bin`: subtypes, and `=` where they differ. */
const EXTENSIONS = extensions({
  image: 'jpeg=jpg png gif webp avif heic tiff bmp svg+xml=svg',
  audio: 'ogg opus mpeg=mp3 mp4=m4a x-m4a=m4a aac wav x-wav=wav flac x-flac=flac webm 3gpp=3gp amr',
  video: 'mp4 quicktime=mov webm x-matroska=mkv mpeg',
  text: 'plain=txt markdown=md csv html calendar=ics vcard=vcf xml',
  application:
    'xml json yaml pdf rtf epub+zip=epub zip gzip=gz x-tar=tar x-7z-compressed=7z msword=doc ' +
    'vnd.ms-excel=xls vnd.ms-powerpoint=ppt ' +
    'vnd.openxmlformats-officedocument.wordprocessingml.document=docx ' +
    'vnd.openxmlformats-officedocument.spreadsheetml.sheet=xlsx ' +
    'vnd.openxmlformats-officedocument.presentationml.presentation=pptx ' +
    'vnd.oasis.opendocument.text=odt vnd.oasis.opendocument.spreadsheet=ods vnd.oasis.opendocument.presentation=odp',
});

function extensions(table: Record<string, string>): Map<string, string> {
  const rows = Object.entries(table).flatMap(([type, subtypes]) =>
    subtypes.split(' ').map((row): [string, string] => {
      const [subtype = '', extension = subtype] = row.split('=');
      return [`${type}/${subtype}`, extension];
    }),
  );
  return new Map(rows);
}

/** `audio/ogg; codecs=opus` is `ogg`, like `audio/ogg`. */
export function extensionOf(mimeType: string | null): string {
  const [type = ''] = (mimeType ?? '').split(';', 1);
  return EXTENSIONS.get(type.trim().toLowerCase()) ?? 'bin';
}

/** The type of a picture; null for what is none, or one whose form can refer to something outside of it (SVG). */
export function pictureType(bytes: Buffer): string | null {
  const at = (from: number, to: number) => bytes.toString('latin1', from, to);
  if (at(0, 3) === '\xff\xd8\xff') return 'image/jpeg';
  if (at(0, 8) === '\x89PNG\r\n\x1a\n') return 'image/png';
  if (at(0, 6) === 'GIF87a' || at(0, 6) === 'GIF89a') return 'image/gif';
  if (at(0, 4) === 'RIFF' && at(8, 12) === 'WEBP') return 'image/webp';
  if (at(0, 4) === 'II*\0' || at(0, 4) === 'MM\0*') return 'image/tiff';
  if (/^ftypavi[fs]/.test(at(4, 12))) return 'image/avif';
  if (/^ftyp(?:hei[cx]|hevc|mif1|msf1)/.test(at(4, 12))) return 'image/heic';
  // A bitmap's own header says how long it is: two letters alone would be any text.
  if (at(0, 2) === 'BM' && at(6, 10) === '\0\0\0\0') return 'image/bmp';
  return null;
}
