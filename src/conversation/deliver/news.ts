/**
 * Step 7 of the route: news for whoever runs the gateway: what a model client noticed (tools dropped, a window cut) or a
 * platform refuses for now stands once in the control chats, or where there are none with the owners. It goes through the outbox like everything else.
 */
import type { ChatRecord } from '../../core/chat-record.js';
import type { ChatId } from '../../core/ids.js';
import type { Notice } from '../../core/model.js';
import { chatsOfOwners } from '../owner-chats.js';
import type { Services } from '../services.js';

type NewsServices = Pick<Services, 'store' | 'channels' | 'rulesFor' | 'clock' | 'log'> & {
  deliver: { wake(chatId: ChatId): void };
};

/** Tells a thing once, however often it is told. Never rejects: nothing fails because of news. */
export type News = (notice: Notice) => Promise<void>;

export function createNews(services: NewsServices): News {
  const { store, log, clock } = services;
  /** In the log once in each life of the process. */
  const logged = new Set<string>();
  const told = new Set<string>();

  async function tell({ key, text }: Notice): Promise<void> {
    if (told.has(key)) return;
    if (!logged.has(key)) log.warn({ notice: key }, text);
    logged.add(key);
    const setting = `notice.${key}`;
    if ((await store.setting(setting)) === null) {
      const chats = await chatsOfOwners(services);
      for (const chat of chats) await post(services, chat, { key, text });
      // Whoever becomes an owner later is told then.
      if (chats.length === 0) return;
      await store.setSetting(setting, new Date(clock.now()).toISOString());
    }
    told.add(key);
  }

  return (notice) =>
    tell(notice).catch((error) =>
      log.error({ err: error, notice: notice.key }, 'news for the owner could not be passed on'),
    );
}

/** Tells it now, once for its key as far as the outbox remembers. Never rejects. */
export async function postNews(services: NewsServices, notice: Notice): Promise<void> {
  services.log.warn({ notice: notice.key }, notice.text);
  try {
    for (const chat of await chatsOfOwners(services)) await post(services, chat, notice);
  } catch (error) {
    services.log.error({ err: error, notice: notice.key }, 'news for the owner could not be passed on');
  }
}

/** Posting it twice has no effect. */
async function post(services: NewsServices, chat: ChatRecord, { key, text }: Notice): Promise<void> {
  const { store, channels, clock, deliver } = services;
  const { id: chatId, channel, address, kind } = chat;
  for (const [part, body] of (channels.get(channel)?.compose(text) ?? []).entries()) {
    await store.post({
      chatId,
      channel,
      address,
      kind,
      threadId: null,
      now: clock.now(),
      delivery: {
        origin: `news:${key}:${chatId}`,
        personaId: null,
        speaker: 'coterie',
        part,
        body,
        replyTo: null,
      },
    });
  }
  deliver.wake(chatId);
}
