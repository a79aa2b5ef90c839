/** The files of a message, as attachments. Pure. */
import type { Attachment } from '../../core/message.js';
import { blockFilesIn } from './rich.js';
import type { Content, Files } from './update.js';

type File = Pick<NonNullable<Files['document']>, 'file_id' | 'file_size' | 'mime_type' | 'file_name'>;

/** Telegram sends each file of an album in a message of its own; only a rich or a paid message has several. */
export function filesIn(content: Content): Attachment[] {
  const several = [...blockFilesIn(content.rich_message), ...(content.paid_media?.paid_media ?? [])];
  return [content, ...several].flatMap(ownFile);
}

function ownFile({ live_photo, voice, video, video_note, animation, audio, ...more }: Files): Attachment[] {
  // A live photo also comes with a photo, which is its first picture.
  const photo = largest(more.photo ?? live_photo?.photo);
  if (photo) return fileOf('image', { mime_type: 'image/jpeg', ...photo });
  if (voice) return fileOf('voice', voice);
  const film = video_note ?? video ?? animation ?? live_photo;
  // An animation also comes with a document, which is the same file.
  if (film) return fileOf('video', film);
  if (audio) return fileOf('audio', { ...audio, file_name: audio.file_name ?? titleOf(audio) });
  const { document } = more;
  if (document) return fileOf(isPicture(document.mime_type) ? 'image' : 'document', document);
  return [];
}

/** None without an id: then it cannot be fetched, and a label takes its place. */
function fileOf(kind: Attachment['kind'], file: File & { duration?: number | undefined }): Attachment[] {
  const { file_id: source, file_name, mime_type, file_size, duration } = file;
  if (!source) return [];
  const known = { name: file_name || null, mimeType: mime_type || null };
  return [{ kind, source, ...known, bytes: file_size ?? null, seconds: duration ?? null }];
}

/** Telegram lists them from the smallest on. */
function largest(sizes: Files['photo'] = []) {
  const area = (size: (typeof sizes)[number]) => (size.width ?? 0) * (size.height ?? 0);
  return sizes
    .filter((size) => size.file_id)
    .toSorted((one, other) => area(one) - area(other))
    .at(-1);
}

/** An SVG is a document to us: it is XML. */
function isPicture(mimeType: string | undefined): boolean {
  return mimeType !== undefined && /^image\/(?!svg)/i.test(mimeType);
}

export function titleOf(audio: NonNullable<Files['audio']>): string | undefined {
  if (audio.performer && audio.title) return `${audio.performer} – ${audio.title}`;
  return audio.title || audio.performer || audio.file_name;
}
