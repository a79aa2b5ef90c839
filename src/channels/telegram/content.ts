/** A message's content other than plain text: rich text, files, or a label that says what was sent. Pure. */
import type { Audio, Checklist, Document, Location, PhotoSize } from 'grammy/types';
import { sizeInWords } from '../../core/cut.js';
import type { Attachment } from '../../core/message.js';
import { bracketed } from '../kit/incoming.js';
import { nameOf, readBlock, type ShownContent } from './update.js';

export function wordsOf({ text, caption, rich_message: rich }: ShownContent): string {
  return text || caption || (rich === undefined ? '' : blocks(pruned(rich.blocks)));
}

/** Telegram sends each file of an album as a message of its own; only rich and paid messages have several. */
export function filesIn(content: ShownContent): Attachment[] {
  const paid = [content.paid_media?.paid_media ?? []].flat() as ShownContent[];
  return [content, ...filesBelow(pruned(content.rich_message?.blocks)), ...paid].flatMap(ownFile);
}

function ownFile(content: ShownContent): Attachment[] {
  const { live_photo: live, voice, audio, document } = content;
  // A live photo also comes with a photo, its first frame.
  const photo = largest(content.photo ?? live?.photo);
  if (photo) return fileOf('image', { mime_type: 'image/jpeg', ...photo });
  if (voice) return fileOf('voice', voice);
  const film = content.video_note ?? content.video ?? content.animation ?? live;
  // An animation also comes with a document, the same file.
  if (film) return fileOf('video', film);
  if (audio) return fileOf('audio', { ...audio, file_name: audio.file_name ?? titleOf(audio) ?? '' });
  if (!document) return [];
  // An SVG counts as a document: it is XML.
  const isPicture = /^image\/(?!svg)/i.test(document.mime_type ?? '');
  return fileOf(isPicture ? 'image' : 'document', document);
}

type AnyFile = Partial<Document> & { duration?: number };

/** Empty without an id: the file cannot be fetched, and a label takes its place. */
function fileOf(kind: Attachment['kind'], file: AnyFile): Attachment[] {
  const { file_id: source, file_name, mime_type, file_size: bytes = null, duration: seconds = null } = file;
  if (!source) return [];
  return [{ kind, source, name: file_name || null, mimeType: mime_type || null, bytes, seconds }];
}

function largest(sizes: PhotoSize[] = []): PhotoSize | undefined {
  const area = ({ width, height }: PhotoSize) => (width ?? 0) * (height ?? 0);
  const fetchable = sizes.filter((size) => size.file_id);
  return fetchable.toSorted((one, other) => area(one) - area(other)).at(-1);
}

function titleOf(audio: Audio): string | undefined {
  if (audio.performer && audio.title) return `${audio.performer} – ${audio.title}`;
  return audio.title || audio.performer || audio.file_name;
}

/** Fields next to the content: nobody expects an answer to these. */
const BESIDE = new Set(
  `from sender_chat chat direct_messages_topic receiver_user sender_business_bot forward_origin forward_from
  forward_from_chat reply_to_message external_reply quote reply_to_story via_bot guest_bot_caller_user
  guest_bot_caller_chat link_preview_options reply_markup entities caption_entities suggested_post_info
  origin`.split(/\s+/),
);

/** Service messages: nobody expects an answer to these. */
const SERVICE = new Set(
  `new_chat_members new_chat_member new_chat_participant left_chat_member left_chat_participant chat_owner_left
  chat_owner_changed new_chat_title new_chat_photo delete_chat_photo group_chat_created supergroup_chat_created
  channel_chat_created message_auto_delete_timer_changed pinned_message migrate_to_chat_id migrate_from_chat_id
  community_chat_added community_chat_removed community_chat_joined managed_bot_created
  suggested_post_approved suggested_post_approval_failed suggested_post_declined suggested_post_paid
  suggested_post_refunded successful_payment refunded_payment users_shared user_shared chat_shared connected_website
  write_access_allowed passport_data proximity_alert_triggered boost_added chat_background_set forum_topic_created
  forum_topic_edited forum_topic_closed forum_topic_reopened general_forum_topic_hidden general_forum_topic_unhidden
  giveaway_created giveaway_completed gift_upgrade_sent poll_option_added poll_option_deleted
  paid_message_price_changed direct_message_price_changed video_chat_scheduled video_chat_started video_chat_ended
  video_chat_participants_invited web_app_data`.split(/\s+/),
);

/** Words for a field of a message. The first one present counts. */
type Labels = {
  [Field in keyof ShownContent]?: (value: NonNullable<ShownContent[Field]>, all: ShownContent) => string;
};

/** Content that people communicate with, worth hearing in a group. A venue also comes with a location. */
const TELLING: Labels = {
  venue: ({ title, address, location }, all) =>
    words('place', title, address, coordinates(location) || coordinates(all.location)),
  location: (place) => words(place.live_period ? 'live location' : 'location', coordinates(place)),
  contact: ({ first_name, last_name, phone_number: number }) =>
    words('contact', [first_name, last_name].filter(Boolean).join(' '), number),
  poll: ({ question, options = [] }) => {
    const choices = options.map(({ text }) => text).join('; ');
    return words('poll', question) + (choices && `: ${choices}`);
  },
  giveaway: ({ winner_count: count, prize_description: prize }) =>
    words('giveaway', '', winners(count), prize),
  giveaway_winners: ({ winner_count: count, prize_description: prize }) =>
    words('result of a giveaway', '', winners(count), prize),
  checklist_tasks_done: (done) => {
    const checklist = done.checklist_message?.checklist;
    const now = tasksNamed(checklist, done.marked_as_done_task_ids, 'done');
    return words(
      'checklist',
      checklist?.title,
      now,
      tasksNamed(checklist, done.marked_as_not_done_task_ids, 'not done'),
    );
  },
  checklist_tasks_added: ({ checklist_message: message, tasks }) => {
    const added = tasks?.map(({ text }) => text).join('; ');
    return words('checklist', message?.checklist?.title, added && `added: ${added}`);
  },
};

/** A live photo also comes with a photo, an animation with a document. */
const SHOWING: Labels = {
  live_photo: () => 'live photo',
  photo: () => 'photo',
  voice: ({ duration }) => words('voice message', '', seconds(duration)),
  video_note: ({ duration }) => words('round video message', '', seconds(duration)),
  video: ({ duration }) => words('video', '', seconds(duration)),
  animation: () => 'animation',
  audio: (audio) => words('audio', titleOf(audio), seconds(audio.duration)),
  document: ({ file_name: name, file_size: bytes }) =>
    words('document', name, bytes === undefined ? '' : sizeInWords(bytes)),
  sticker: ({ emoji }) => words('sticker', emoji),
  dice: ({ emoji, value }) => words('dice', emoji, value === undefined ? '' : `shows ${value}`),
  game: ({ title }) => words('game', title),
  story: ({ chat }) => words('story', chat && `of ${nameOf(chat)}`),
  paid_media: ({ star_count: stars }) => words('paid media', '', stars === undefined ? '' : `${stars} Stars`),
  gift: ({ gift, text }) => words('gift', gift?.sticker?.emoji, text),
  unique_gift: ({ gift, text }) => {
    const { base_name: name = '', number } = gift ?? {};
    return words('unique gift', name + (number === undefined ? '' : ` #${number}`), text);
  },
  invoice: ({ title }) => words('invoice', title),
};

/** `all`: not only what is worth hearing in a group. null for a service message or an empty one. */
export function labelOf(content: ShownContent, all: boolean): string | null {
  const { checklist } = content;
  if (checklist) {
    const tasks = (checklist.tasks ?? []).map(
      ({ text, completion_date: done }) => `- [${done ? 'x' : ' '}] ${text}`,
    );
    return [bracketed(`checklist ${checklist.title ?? ''}`), ...tasks].join('\n');
  }
  const label =
    labelFrom(TELLING, content) ?? (all ? (labelFrom(SHOWING, content) ?? unknownLabel(content)) : null);
  return label === null ? null : bracketed(label);
}

function labelFrom(labels: Labels, content: ShownContent): string | null {
  for (const [field, label] of Object.entries(labels)) {
    const value = content[field as keyof ShownContent];
    if (value) return (label as (value: unknown, all: ShownContent) => string)(value, content);
  }
  return null;
}

/** Message kinds newer than this code still get an answer. */
function unknownLabel(content: ShownContent): string | null {
  const fields = Object.entries(content).flatMap(([name, value]) => (typeof value === 'object' ? name : []));
  if (fields.some((field) => SERVICE.has(field))) return null;
  const kind = fields.find((field) => !BESIDE.has(field) && /^\w{1,64}$/.test(field));
  return kind === undefined ? null : `a message of a kind I do not know: ${kind}`;
}

/** Uses the name and further details as far as there are any. */
function words(kind: string, name?: string, ...more: (string | undefined)[]): string {
  return [name ? `${kind} ${name}` : kind, ...more.filter(Boolean)].join(', ');
}

function tasksNamed(checklist: Checklist | undefined, ids: number[] | undefined, how: string): string {
  const tasks = (checklist?.tasks ?? []).filter(({ id }) => id !== undefined && ids?.includes(id));
  return tasks.length === 0 ? '' : `${how}: ${tasks.map(({ text }) => text).join('; ')}`;
}

function coordinates({ latitude, longitude }: Partial<Location> = {}): string {
  return Number.isFinite(latitude) && Number.isFinite(longitude) ? `${latitude}, ${longitude}` : '';
}

function winners(count: number | undefined): string {
  return count === undefined ? '' : count === 1 ? '1 winner' : `${count} winners`;
}

function seconds(duration: number | undefined): string {
  if (duration === undefined) return '';
  return duration < 60 ? `${duration} s` : `${Math.floor(duration / 60)} min ${duration % 60} s`;
}

// A rich message (Bot API 10.1) becomes Markdown. Unknown blocks keep their text, in order.

type Node = Record<string, unknown>;

/** Levels of JSON; Telegram nests blocks up to 16 times. */
const DEEPEST = 100;

/** Leaves out blocks that are nested deeper. */
function pruned(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > DEEPEST) return null;
  if (Array.isArray(value)) return value.map((each) => pruned(each, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, pruned(each, depth + 1)]));
}

/** Files of blocks, in order. */
function filesBelow(value: unknown): ShownContent[] {
  return nodesIn(value).flatMap((node) => {
    const block = readBlock(node);
    const { voice = block.voice_note } = block;
    const files = voice === undefined ? block : { ...block, voice };
    return [files, ...filesBelow([node.blocks, node.items])];
  });
}

function blocks(value: unknown, between = '\n\n'): string {
  const each = nodesIn(value).map((node) => (BLOCKS.get(node.type) ?? otherBlock)(node));
  return each.filter((text) => text.trim() !== '').join(between);
}

type Writer = (node: Node) => string;

const text: Writer = (node) => inline(node.text);
const below: Writer = (node) => blocks(node.blocks);

const BLOCKS = new Map<unknown, Writer>([
  ['heading', (node) => `${'#'.repeat(SIZES.find((size) => size === node.size) ?? 2)} ${text(node)}`],
  ['pre', (node) => `\`\`\`${stringIn(node.language)}\n${text(node)}\n\`\`\``],
  ['mathematical_expression', (node) => `$$${stringIn(node.expression)}$$`],
  ['divider', () => '---'],
  ['list', (node) => lines(...nodesIn(node.items).map(listItem))],
  ['blockquote', quote],
  ['expandable_blockquote', quote],
  ['pullquote', quote],
  ['table', (node) => lines(caption(node), table(node.cells))],
  ['details', (node) => lines(`**${inline(node.summary)}**`, below(node))],
  [
    'buttons',
    (node) =>
      nodesIn(node.buttons)
        .map((each) => `[${text(each)}]`)
        .join(' '),
  ],
  ['map', (node) => lines(location(node.location), caption(node))],
]);

/** Paragraphs, unknown blocks, and blocks with files, which may have a caption. */
const otherBlock: Writer = (node) =>
  lines(loose({ ...node, blocks: [], caption: null }), below(node), caption(node));

function listItem(item: Node): string {
  const label = stringIn(item.label);
  const sign = /^\w+[.)]?$/.test(label) ? label.replace(/\w$/, '$&.') : '-';
  const box = item.has_checkbox === true ? `[${item.is_checked === true ? 'x' : ' '}] ` : '';
  return `${sign} ${box}${blocks(item.blocks, '\n').replaceAll('\n', '\n  ')}`;
}

/** Some have a text, others blocks. */
function quote(node: Node): string {
  const by = inline(node.credit);
  const said = lines(text(node), below(node), by && `— ${by}`);
  return said === '' ? '' : said.replaceAll(/^/gm, '> ');
}

function table(rows: unknown): string {
  const cells = listIn(rows).map((row) => nodesIn(row).map(text));
  const [head = [], ...others] = cells.map((row) => `| ${row.join(' | ')} |`);
  if (cells.length === 0) return '';
  return [head, `|${'---|'.repeat(cells[0]?.length ?? 1)}`, ...others].join('\n');
}

/** A text, or one with a credit. */
function caption({ caption: value }: Node): string {
  const node = nodeIn(value);
  if (node === null || node.type !== undefined) return inline(value);
  return lines(inline(node.text), inline(node.credit));
}

function location(value: unknown): string {
  return bracketed(words('location', coordinates(nodeIn(value) ?? {})));
}

const SIZES = [1, 2, 3, 4, 5, 6];

const marked = (mark: string) => (text: string) => (text.trim() === '' ? text : mark + text + mark);

const INLINES = new Map<unknown, (text: string, node: Node) => string>([
  ['bold', marked('**')],
  ['italic', marked('_')],
  ['strikethrough', marked('~~')],
  ['code', marked('`')],
  ['spoiler', marked('||')],
  ['marked', marked('==')],
  ['url', (text, { url }) => (!url || text === url ? text : `[${text}](${stringIn(url)})`)],
  ['mathematical_expression', (_text, { expression }) => `$${stringIn(expression)}$`],
  ['custom_emoji', (_text, { alternative_text: emoji }) => stringIn(emoji)],
  ['button', (_text, { button }) => `[${inline(nodeIn(button)?.text)}]`],
]);

function inline(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(inline).join('');
  const node = nodeIn(value);
  if (node === null) return '';
  const text = inline(node.text);
  const write = INLINES.get(node.type);
  return write === undefined ? text || loose({ ...node, text: '' }) : write(text, node);
}

/** All texts in a value of unknown form. */
function loose(value: unknown): string {
  if (Array.isArray(value)) {
    return lines(...value.map((each) => (typeof each === 'string' ? each : loose(each))));
  }
  return lines(
    ...Object.entries(nodeIn(value) ?? {}).map(([name, each]) => {
      if (name === 'text') return inline(each);
      return typeof each === 'string' ? '' : loose(each);
    }),
  );
}

function lines(...texts: string[]): string {
  return texts.filter(Boolean).join('\n');
}

function nodesIn(value: unknown): Node[] {
  return listIn(value)
    .flat()
    .map(nodeIn)
    .filter((node) => node !== null);
}

function listIn(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function nodeIn(value: unknown): Node | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Node) : null;
}

function stringIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
