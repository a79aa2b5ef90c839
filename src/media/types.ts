/** What kinds of files are called on the disk, and what a file is by its first bytes, whatever its sender says. Pure. */

/** Every extension that a file in the media folder may have, beside `bin`. */
const EXTENSIONS: Record<string, string> = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'image/avif': 'avif',
  'image/heic': 'heic',
  'image/tiff': 'tiff',
  'image/bmp': 'bmp',
  'image/svg+xml': 'svg',
  'audio/ogg': 'ogg',
  'audio/opus': 'opus',
  'audio/mpeg': 'mp3',
  'audio/mp4': 'm4a',
  'audio/x-m4a': 'm4a',
  'audio/aac': 'aac',
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/flac': 'flac',
  'audio/x-flac': 'flac',
  'audio/webm': 'webm',
  'audio/3gpp': '3gp',
  'audio/amr': 'amr',
  'video/mp4': 'mp4',
  'video/quicktime': 'mov',
  'video/webm': 'webm',
  'video/x-matroska': 'mkv',
  'video/mpeg': 'mpeg',
  'text/plain': 'txt',
  'text/markdown': 'md',
  'text/csv': 'csv',
  'text/html': 'html',
  'text/calendar': 'ics',
  'text/vcard': 'vcf',
  'text/xml': 'xml',
  'application/xml': 'xml',
  'application/json': 'json',
  'application/yaml': 'yaml',
  'application/pdf': 'pdf',
  'application/rtf': 'rtf',
  'application/epub+zip': 'epub',
  'application/zip': 'zip',
  'application/gzip': 'gz',
  'application/x-tar': 'tar',
  'application/x-7z-compressed': '7z',
  'application/msword': 'doc',
  'application/vnd.ms-excel': 'xls',
  'application/vnd.ms-powerpoint': 'ppt',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'pptx',
  'application/vnd.oasis.opendocument.text': 'odt',
  'application/vnd.oasis.opendocument.spreadsheet': 'ods',
  'application/vnd.oasis.opendocument.presentation': 'odp',
};

/** `audio/ogg; codecs=opus` is `audio/ogg`. */
export function bareType(mimeType: string | null): string {
  return (mimeType ?? '').split(';', 1).join('').trim().toLowerCase();
}

export function extensionOf(mimeType: string | null): string {
  const type = bareType(mimeType);
  return Object.hasOwn(EXTENSIONS, type) ? (EXTENSIONS[type] ?? 'bin') : 'bin';
}

const BRANDS: Record<string, string> = {
  avif: 'image/avif',
  avis: 'image/avif',
  heic: 'image/heic',
  heix: 'image/heic',
  hevc: 'image/heic',
  mif1: 'image/heic',
  msf1: 'image/heic',
};

/** The type of a picture; null for what is none, or one whose form can reach out of itself (SVG). */
export function pictureType(bytes: Buffer): string | null {
  const at = (from: number, to: number) => bytes.toString('latin1', from, to);
  if (at(0, 3) === '\xff\xd8\xff') return 'image/jpeg';
  if (at(0, 8) === '\x89PNG\r\n\x1a\n') return 'image/png';
  if (at(0, 6) === 'GIF87a' || at(0, 6) === 'GIF89a') return 'image/gif';
  if (at(0, 4) === 'RIFF' && at(8, 12) === 'WEBP') return 'image/webp';
  if (at(0, 4) === 'II*\0' || at(0, 4) === 'MM\0*') return 'image/tiff';
  if (at(4, 8) === 'ftyp') return BRANDS[at(8, 12)] ?? null;
  // A bitmap's own header says how long it is: two letters alone would be any text.
  if (at(0, 2) === 'BM' && at(6, 10) === '\0\0\0\0') return 'image/bmp';
  return null;
}
