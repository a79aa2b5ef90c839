/** The fake Bot API as one of the platforms that the conversation script and the kills run on. */
import { startFakeTelegram } from '../fakes/telegram.js';
import { type Chat, group } from '../fakes/telegram-chats.js';
import type { Person, Place, Platform } from './platform.js';

const LOOK_EVERY_MS = 1;

export async function telegramPlatform(): Promise<Platform> {
  const telegram = await startFakeTelegram({ answerDelayMs: 3 });
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

  return {
    name: 'telegram',
    recognisesResends: false,
    config: {
      ...{ token: telegram.token, api_root: telegram.url },
      ...{ messages_per_second: 1000, per_chat_burst: 1000 },
    },
    environment: {},
    connected: () => telegram.until(() => telegram.polls.count > 0, 'the gateway asks for updates'),
    say({ from, in: place, text, mention, replyTo, image }) {
      const words = mention ? `@${telegram.bot.username} ${text}` : text;
      const said = telegram.say({
        from: { id: idOf(from), first_name: from.name },
        ...(place.kind === 'group' ? { chat: groupOf(place) } : {}),
        ...(replyTo === undefined ? {} : { replyTo: Number(replyTo) }),
        ...(image === undefined ? { text: words } : { caption: words, photo: image }),
      });
      return String(said.messageId);
    },
    edit(place, id, text) {
      const said = telegram.said(chatIdOf(place), Number(id));
      telegram.edit(said, text);
    },
    command(from, place, text) {
      telegram.say({
        ...{ from: { id: idOf(from), first_name: from.name }, text },
        ...(place.kind === 'group' ? { chat: groupOf(place) } : {}),
      });
    },
    shown: (place) =>
      telegram.sent
        .filter(({ chatId }) => chatId === chatIdOf(place))
        .map((sent) => ({
          id: String(sent.messageId),
          text: sent.text,
          files: sent.document === null ? [] : [sent.document.name],
          replyTo: sent.replyTo === null ? null : String(sent.replyTo),
          at: sent.at,
          cut: sent.cut || !sent.answered,
        })),
    onEvent: (listener) => void listeners.push(listener),
    chatId: (place) => `telegram_${chatIdOf(place)}`,
    async close() {
      clearInterval(watch);
      await telegram.close();
    },
  };
}

function idOf({ number }: Person): number {
  return 1_000 + number;
}

function chatIdOf({ kind, number }: Place): number {
  return kind === 'direct' ? 1_000 + number : -1_001_000_000_000 - number;
}

function groupOf(place: Place): Chat {
  return group(chatIdOf(place), `Group ${place.number}`);
}
