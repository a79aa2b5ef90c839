/** What a message holds beside words: its file, or a label for what is neither words nor file. Pure. */
import { sizeInWords } from '../../core/bytes.js';
import type { Attachment } from '../../core/message.js';
import type { Content } from './update.js';

/** The file of a message; Telegram sends each file of an album in a message of its own. */
export function attachmentsIn(content: Content): Attachment[] {
  const { voice, video, video_note, animation, audio, document } = content;
  const photo = largest(content.photo);
  if (photo) return fileOf('image', { mime_type: 'image/jpeg', ...photo });
  if (voice) return fileOf('voice', voice);
  const film = video_note ?? video ?? animation;
  // An animation also comes with a document, which is the same file.
  if (film) return fileOf('video', film);
  if (audio) return fileOf('audio', { ...audio, file_name: audio.file_name ?? titleOf(audio) });
  if (document) return fileOf(isPicture(document.mime_type) ? 'image' : 'document', document);
  return [];
}

/** What every bot is told alike of a message's files; the id of a file is another one for each bot. */
export function fileMarksIn(content: Content): string[] {
  const { photo = [], voice, video, video_note, animation, audio, document } = content;
  return [...photo, voice, video, video_note, animation, audio, document]
    .map((file) => file?.file_unique_id)
    .filter((mark) => mark !== undefined);
}

interface File {
  file_id?: string | undefined;
  file_name?: string | undefined;
  mime_type?: string | undefined;
  file_size?: number | undefined;
  duration?: number | undefined;
}

/** None without an id: then it cannot be fetched, and a label takes its place. */
function fileOf(kind: Attachment['kind'], file: File): Attachment[] {
  const { file_id: source, file_name, mime_type, file_size, duration } = file;
  if (!source) return [];
  const known = { name: file_name || null, mimeType: mime_type || null };
  return [{ kind, source, ...known, bytes: file_size ?? null, seconds: duration ?? null }];
}

function largest(sizes: Content['photo']) {
  const area = (size: { width?: number | undefined; height?: number | undefined }) =>
    (size.width ?? 0) * (size.height ?? 0);
  // Telegram lists them from the smallest on.
  return sizes
    ?.filter((size) => size.file_id)
    .reduce<(typeof sizes)[number] | null>(
      (best, size) => (best === null || area(size) >= area(best) ? size : best),
      null,
    );
}

/** An SVG is a document to us: it is XML. */
function isPicture(mimeType: string | undefined): boolean {
  return mimeType !== undefined && /^image\/(?!svg)/i.test(mimeType);
}

/**
 * A label in the place of words, so that a persona can say that it cannot see this. null for what shows nothing: a
 * service message, or a kind we do not know.
 */
export function mediaLabel(content: Content): string | null {
  const words = mediaWords(content);
  return words === null ? null : `[${words}]`;
}

function mediaWords(content: Content): string | null {
  const { voice, video, video_note, audio, document, sticker, venue, contact, poll, dice, game } = content;
  if (content.photo) return 'photo';
  if (voice) return listed('voice message', seconds(voice.duration));
  if (video_note) return listed('round video message', seconds(video_note.duration));
  if (video) return listed('video', seconds(video.duration));
  // An animation also comes with a document, a venue also with a location.
  if (content.animation) return 'animation';
  if (audio) return listed(named('audio', titleOf(audio)), seconds(audio.duration));
  if (document) return listed(named('document', document.file_name), size(document.file_size));
  if (sticker) return named('sticker', sticker.emoji);
  if (venue) return listed(named('place', venue.title), venue.address);
  if (content.location) return 'location';
  if (contact) return listed(named('contact', nameOf(contact)), contact.phone_number);
  if (poll) return named('poll', poll.question);
  if (dice)
    return listed(named('dice', dice.emoji), dice.value === undefined ? undefined : `shows ${dice.value}`);
  if (game) return named('game', game.title);
  if (content.story) return 'story';
  if (content.paid_media) return 'paid media';
  return null;
}

function named(kind: string, name: string | undefined): string {
  return name ? `${kind} ${name}` : kind;
}

function listed(first: string, second: string | undefined): string {
  return second ? `${first}, ${second}` : first;
}

function titleOf(audio: NonNullable<Content['audio']>): string | undefined {
  if (audio.performer && audio.title) return `${audio.performer} – ${audio.title}`;
  return audio.title || audio.performer || audio.file_name;
}

function nameOf(person: { first_name?: string | undefined; last_name?: string | undefined }): string {
  return [person.first_name, person.last_name].filter(Boolean).join(' ');
}

function seconds(duration: number | undefined): string | undefined {
  if (duration === undefined) return undefined;
  return duration < 60 ? `${duration} s` : `${Math.floor(duration / 60)} min ${duration % 60} s`;
}

function size(bytes: number | undefined): string | undefined {
  return bytes === undefined ? undefined : sizeInWords(bytes);
}
