/** What a message says: its words with whom they mention, its file, or a label for what is neither. Pure. */
import { sizeInWords } from '../../core/bytes.js';
import type { Attachment, InboundMessage } from '../../core/message.js';
import type { OurBot } from './bots.js';
import { messageIdOf } from './message-id.js';
import type { Content, Message } from './update.js';

/** `/cmd@SomeBot` at the start of a message: the command, and the handle. */
const OPENING_COMMAND = /^(\/\w{1,64})(@\w+)(?=\s|$)/;

/**
 * Words and files, as `bot` received them. What has neither gets a label in a direct chat, where somebody waits for an
 * answer; what has no label either is nothing.
 */
export function saidIn(
  message: Message,
  { bot, ours, direct }: { bot: OurBot; ours: readonly OurBot[]; direct: boolean },
): Pick<InboundMessage, 'text' | 'attachments' | 'mentionsBot' | 'addresses'> | null {
  // Only the bot that received a file may fetch it.
  const files = filesIn(message).map((file) => ({ ...file, source: messageIdOf(bot, file.source) }));
  const words = wordsOf(message);
  const label = files.length > 0 ? '' : direct ? mediaLabel(message) : null;
  if (words === '' && label === null) return null;
  const { text, bots } = mentionsIn(words, message, ours);
  // What is said to a persona's own bot alone is said to that persona.
  const mentioned = direct && bot.personaId !== undefined ? [bot, ...bots] : bots;
  const personas = new Set(mentioned.map(({ personaId }) => personaId).filter((id) => id !== undefined));
  return {
    text: words === '' ? (label ?? '') : text,
    ...(files.length === 0 ? {} : { attachments: files }),
    mentionsBot: mentioned.length > 0,
    ...(personas.size === 0 ? {} : { addresses: [...personas] }),
  };
}

export function wordsOf(content: Content): string {
  return content.text || content.caption || '';
}

/**
 * Which of our bots a message mentions, in that order: by their usernames, by a mention, behind a command. And its words
 * without our names on commands (`/cmd@OurBot` is `/cmd`; another bot's stays).
 */
function mentionsIn(words: string, message: Message, ours: readonly OurBot[]) {
  let text = words;
  const found = new Map<OurBot, number>();
  const mention = (bot: OurBot, at: number) => found.set(bot, Math.min(at, found.get(bot) ?? at));
  // Telegram marks mentions and commands; a bridge or an older server may not, and the words say the same.
  const lower = words.toLowerCase();
  for (const bot of ours) {
    const at = positionOf(lower, handleOf(bot));
    if (at >= 0) mention(bot, at);
  }
  const entities = (message.text ? message.entities : message.caption_entities) ?? [];
  // From the end, so that the offsets before a shortened command still hold.
  for (const { type, offset, length, user } of entities.toSorted((one, other) => other.offset - one.offset)) {
    const end = offset + length;
    const said = words.slice(offset, end).toLowerCase();
    for (const bot of ours) {
      if (type === 'text_mention' && user?.id === bot.id) mention(bot, offset);
      const handle = handleOf(bot);
      if (type !== 'bot_command' || handle === '' || !said.endsWith(handle)) continue;
      mention(bot, offset);
      text = text.slice(0, end - handle.length) + text.slice(end);
    }
  }
  const [opening, command = '', handle = ''] = OPENING_COMMAND.exec(text) ?? [''];
  const called = ours.find((bot) => handle !== '' && handleOf(bot) === handle.toLowerCase());
  if (called !== undefined) {
    mention(called, 0);
    text = command + text.slice(opening.length);
  }
  return { text, bots: [...found].toSorted(([, one], [, other]) => one - other).map(([bot]) => bot) };
}

function handleOf({ username }: OurBot): string {
  return username === '' ? '' : `@${username.toLowerCase()}`;
}

/** Where a name stands in the text as a word of its own; -1 if nowhere. */
function positionOf(text: string, name: string): number {
  if (name === '') return -1;
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    if (!/[\w@/]/.test(text[at - 1] ?? ' ') && !/\w/.test(text[at + name.length] ?? ' ')) return at;
  }
  return -1;
}

/** The file of a message; Telegram sends each file of an album in a message of its own. */
function filesIn(content: Content): Attachment[] {
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

/** None without an id: then it cannot be fetched, and a label takes its place. */
function fileOf(kind: Attachment['kind'], file: NonNullable<Content['voice']>): Attachment[] {
  const { file_id: source, file_name, mime_type, file_size, duration } = file;
  if (!source) return [];
  const known = { name: file_name || null, mimeType: mime_type || null };
  return [{ kind, source, ...known, bytes: file_size ?? null, seconds: duration ?? null }];
}

/** Telegram lists them from the smallest on. */
function largest(sizes: Content['photo'] = []) {
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
  if (voice) return words('voice message', '', seconds(voice.duration));
  if (video_note) return words('round video message', '', seconds(video_note.duration));
  if (video) return words('video', '', seconds(video.duration));
  // An animation also comes with a document, a venue also with a location.
  if (content.animation) return 'animation';
  if (audio) return words('audio', titleOf(audio), seconds(audio.duration));
  if (document) {
    const { file_name: name, file_size: bytes } = document;
    return words('document', name, bytes === undefined ? '' : sizeInWords(bytes));
  }
  if (sticker) return words('sticker', sticker.emoji);
  if (venue) return words('place', venue.title, venue.address);
  if (content.location) return 'location';
  if (contact) {
    const name = [contact.first_name, contact.last_name].filter(Boolean).join(' ');
    return words('contact', name, contact.phone_number);
  }
  if (poll) return words('poll', poll.question);
  if (dice) return words('dice', dice.emoji, dice.value === undefined ? '' : `shows ${dice.value}`);
  if (game) return words('game', game.title);
  if (content.story) return 'story';
  if (content.paid_media) return 'paid media';
  return null;
}

/** As far as there is a name, and more to say. */
function words(kind: string, name?: string, more?: string): string {
  return `${kind}${name ? ` ${name}` : ''}${more ? `, ${more}` : ''}`;
}

function titleOf(audio: NonNullable<Content['audio']>): string | undefined {
  if (audio.performer && audio.title) return `${audio.performer} – ${audio.title}`;
  return audio.title || audio.performer || audio.file_name;
}

function seconds(duration: number | undefined): string {
  if (duration === undefined) return '';
  return duration < 60 ? `${duration} s` : `${Math.floor(duration / 60)} min ${duration % 60} s`;
}
