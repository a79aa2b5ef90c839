/** The fake Bot API as a `Platform`, for the conversation script and the kill tests: one bot, or more for some personas. */
import { type FakeTelegram, type SentMessage, startFakeTelegram } from '../fakes/telegram.js';
import type { Payload } from '../fakes/telegram-body.js';
import { type Chat, group, type Saying as TelegramSaying } from '../fakes/telegram-chats.js';
import { origins } from '../fakes/telegram-kinds.js';
import { buttonsOf } from '../fakes/telegram-presses.js';
import { type Image, type Person, type Place, type Platform, type Saying, voiceNoteOf } from './platform.js';

const LOOK_EVERY_MS = 1;

/** A draft disappears after this time. */
const DRAFT_MS = 30_000;

interface TelegramPlatformOptions {
  /** Persona IDs, and the names of their bots. */
  personaBots?: Record<string, string>;
}

export async function telegramPlatform({
  personaBots = {},
}: TelegramPlatformOptions = {}): Promise<Platform & { telegram: FakeTelegram }> {
  const telegram = await startFakeTelegram({ answerDelayMs: 3 });
  const bots = Object.entries(personaBots).map(([personaId, name], n) => ({
    ...{ personaId, name },
    bot: telegram.addBot({
      ...{ token: `${500_000 + n}:fake-token-of-a-bot-of-a-persona`, id: 500_000 + n },
      ...{ username: `${personaId}_bot`, me: { first_name: name } },
    }),
  }));
  const listeners: ((event: 'sent' | 'intake') => void)[] = [];
  const tell = (event: 'sent' | 'intake') => {
    for (const listener of listeners) listener(event);
  };
  let polls = telegram.polls.count;
  let taken = telegram.sent.length;
  const watch = setInterval(() => {
    for (; polls < telegram.polls.count; polls++) tell('intake');
    for (; taken < telegram.sent.length; taken++) tell('sent');
  }, LOOK_EVERY_MS);

  const sentIn = (place: Place) =>
    telegram.sent.filter(({ chatId, gone }) => chatId === chatIdOf(place) && !gone);

  /** A group that all our bots are in. */
  function groupOf(place: Place): Chat {
    for (const { bot } of bots) telegram.join(bot, chatIdOf(place));
    return group(chatIdOf(place), `Group ${place.number}`);
  }

  function sayingOf(
    { from, in: place, text, mention, replyTo, file }: Saying,
    image?: Image,
  ): TelegramSaying {
    const words = mention ? `@${telegram.bot.username} ${text}` : text;
    return {
      from: { id: idOf(from), first_name: from.name },
      ...(place.kind === 'group' ? { chat: groupOf(place) } : {}),
      ...(replyTo === undefined ? {} : { replyTo: Number(replyTo) }),
      ...(image
        ? { caption: words, photo: image }
        : file
          ? { caption: words, document: file }
          : { text: words }),
    };
  }

  return {
    telegram,
    name: 'telegram',
    recognisesResends: false,
    hasFaces: bots.length > 0,
    config: {
      ...{ token: telegram.token, api_root: telegram.url },
      ...(bots.length === 0
        ? {}
        : { persona_tokens: Object.fromEntries(bots.map(({ personaId, bot }) => [personaId, bot.token])) }),
      ...{ messages_per_second: 1000, per_chat_burst: 1000 },
    },
    environment: {},
    connected: () =>
      telegram.until(
        () => [telegram, ...bots.map(({ bot }) => bot)].every(({ polls: { count } }) => count > 0),
        'the gateway asks for updates',
      ),
    say: (saying) => String(telegram.say(sayingOf(saying, saying.image)).messageId),
    album(saying, images) {
      const [first, ...others] = images.map((image) => sayingOf(saying, image));
      if (first === undefined) throw new Error('an album of no pictures');
      const items = [first, ...others.map(({ caption: _below, ...item }) => item)];
      return telegram.album(items).map(({ messageId }) => String(messageId));
    },
    forward(saying, author) {
      const origin = origins.hiddenUser(author);
      return String(telegram.say({ ...sayingOf(saying), forwards: { origin } }).messageId);
    },
    edit(place, id, text) {
      const said = telegram.said(chatIdOf(place), Number(id));
      telegram.edit(said, text);
    },
    react(from, place, id, sign) {
      const ours = sentIn(place).find(({ messageId }) => String(messageId) === id);
      if (ours === undefined) throw new Error(`we sent no message ${id} to ${chatIdOf(place)}`);
      telegram.react({ id: idOf(from), first_name: from.name }, ours, sign);
    },
    press(from, place, id, label) {
      const ours = sentIn(place).find(({ messageId }) => String(messageId) === id);
      if (ours === undefined) throw new Error(`we sent no message ${id} to ${chatIdOf(place)}`);
      telegram.press({ id: idOf(from), first_name: from.name }, ours, label);
    },
    unanswered: () => telegram.presses.filter(({ answered }) => !answered).length,
    remove(place, id) {
      // Telegram does not notify bots of it.
      const ours = sentIn(place).find(({ messageId }) => String(messageId) === id);
      if (ours !== undefined) telegram.vanish(ours);
    },
    command(from, place, text) {
      telegram.say({
        ...{ from: { id: idOf(from), first_name: from.name }, text },
        ...(place.kind === 'group' ? { chat: groupOf(place) } : {}),
      });
    },
    shown: (place) =>
      sentIn(place).map((sent) => ({
        id: String(sent.messageId),
        text: sent.text,
        files: filesOf(sent),
        replyTo: sent.replyTo === null ? null : String(sent.replyTo),
        at: sent.at,
        cut: sent.cut || !sent.answered,
        speaker: bots.find(({ bot }) => bot.id === sent.bot)?.name ?? null,
        heading: headingOf(sent),
        buttons: buttonsOf(sent).map(({ text }) => text),
      })),
    signs: (place) =>
      telegram.reactions
        .filter(({ chatId }) => chatId === chatIdOf(place))
        .map(({ messageId, emoji }) => ({ on: String(messageId), emoji })),
    typing: (place) =>
      telegram
        .callsOf('sendChatAction')
        .filter(({ chat_id, action }) => Number(chat_id) === chatIdOf(place) && action === 'typing').length,
    preview(place) {
      const draft = telegram.drafts.findLast(({ chatId }) => chatId === chatIdOf(place));
      const replaced = sentIn(place).some(({ at }) => draft !== undefined && at >= draft.at);
      return draft === undefined || replaced || Date.now() - draft.at > DRAFT_MS ? null : draft.text;
    },
    onEvent: (listener) => void listeners.push(listener),
    chatId: (place) => `telegram_${chatIdOf(place)}`,
    personId: (person) => `telegram_${idOf(person)}`,
    async close() {
      clearInterval(watch);
      await telegram.close();
    },
  };
}

function filesOf({ document, voice }: SentMessage): string[] {
  if (voice !== null) return [voiceNoteOf(voice.seconds)];
  return document === null ? [] : [document.name];
}

function headingOf({ text, entities }: { text: string; entities: Payload[] }): string | null {
  const [line = ''] = text.split('\n', 1);
  const isBold = entities.some(
    ({ type, offset, length }) => type === 'bold' && offset === 0 && length === line.length,
  );
  return isBold ? line : null;
}

function idOf({ number }: Person): number {
  return 1_000 + number;
}

function chatIdOf({ kind, number }: Place): number {
  return kind === 'direct' ? 1_000 + number : -1_001_000_000_000 - number;
}
