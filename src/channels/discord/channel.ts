/**
 * Discord: the first and the last step of the route. What the gateway brings is put into our words (`inbound.ts`) and
 * handed in in order (`listening.ts`); what goes out is cut and marked up (`outbound.ts`). This file joins the parts,
 * and holds no rule of its own.
 */
import type { Channel, ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe, Fault } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { Address } from '../../core/message.js';
import type { Outward } from '../../core/network.js';
import { onAbort } from '../kit/abort.js';
import { createState } from '../kit/supervise.js';
import { createAdministrators } from './administrators.js';
import { createAnswers } from './answers.js';
import { createApi } from './api.js';
import type { Room } from './catch-up.js';
import { check } from './check.js';
import { applicationCommands } from './commands.js';
import { createDirectory } from './directory.js';
import { failureOf } from './failure.js';
import { fetchFile } from './files.js';
import { createIdentity } from './identity.js';
import { type Listening, listen } from './listening.js';
import type { DiscordOptions } from './options.js';
import { compose, roomOf } from './outbound.js';
import { read } from './payload.js';
import { createPresses } from './presses.js';
import { createQuotes } from './quotes.js';
import { react } from './react.js';
import { createResends } from './resend.js';
import { edit, remove, send } from './send.js';
import { createSession } from './session.js';
import { createSpeaker } from './speak.js';
import { createUploads } from './uploads.js';
import { createWebhooks } from './webhooks.js';

export interface DiscordParts {
  options: DiscordOptions;
  outward: Outward;
  newId(): string;
  clock: Clock;
  log: Log;
  /** Where people talked, and the last message of each room: to fetch what was missed. */
  newest(): Promise<Room[]>;
  /** Names of the personas of a chat, for autocompletion. */
  personaNames(chat: Address): Promise<string[]>;
  /** What the channel keeps for itself, and the cursor that was stored last: how far the last session was taken in. */
  state: ChannelState;
  cursor(account: Address): Promise<string | null>;
}

export type Discord = Required<
  Omit<Channel, 'preview' | 'webhook' | 'watermark' | 'wasDelivered' | 'reactions' | 'facesAlone'>
> &
  Pick<Channel, 'facesAlone'>;

const OF_THE_LIBRARY = /[\\/]node_modules[\\/]@discordjs[\\/]/;

export function createDiscord(given: DiscordParts): Discord {
  const { options, outward, clock, log } = given;
  const { token } = options;
  const api = createApi(options, { clock, outward });
  const base = { api, clock, log };
  const connecting = createState(clock);
  const storing = createState(clock);
  storing.up();
  const identity = createIdentity(base);
  const session = createSession({ state: given.state, cursor: given.cursor, identity, token, clock, log });
  const directory = createDirectory();
  const webhooks = createWebhooks(base, identity);
  const speaker = createSpeaker(base, identity, webhooks, directory);
  const resends = createResends(base, identity, webhooks);
  const answers = createAnswers(base, resends);
  const presses = createPresses(base);
  const isAdministrator = createAdministrators(base, directory);
  const quotes = createQuotes(base, directory);
  const uploads = createUploads(directory);
  const sender = { ...base, options, answers, resends, speaker, quotes, uploads };
  const stopping = new AbortController();
  let listening: Listening | null = null;

  /** For calls whose errors go out of here. */
  async function orFault<T>(what: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      throw new Fault('internal', `${what}: ${failureOf(error).reason}`);
    }
  }

  return {
    name: 'discord',
    recognisesResends: true,
    ...(options.faces === 'always' ? { facesAlone: true as const } : {}),
    limits: {
      messagesPerSecond: options.messagesPerSecond,
      perChatBurst: options.perChatBurst,
      perChatPerSecond: { direct: 1, group: 1 },
    },
    compose,
    names() {
      const me = identity.known();
      if (me === null) return [];
      const { id, name, username } = me;
      return [...new Set([name, ...(username === undefined ? [] : [username]), ...directory.nicksOf(id)])];
    },
    buttons: true,
    // Those of accounts with Nitro send twice as many.
    typedAtMost: [2_000, 4_000],
    status: () => (storing.status().connected ? connecting.status() : storing.status()),

    async start(receive, signal) {
      onAbort(signal, () => stopping.abort());
      const parts = {
        ...given,
        api,
        identity,
        session,
        directory,
        answers,
        presses,
        resends,
        webhooks,
        quotes,
        uploads,
        connecting,
        storing,
      };
      listening = listen(parts, receive, stopping.signal);
    },

    voiceNotes: true,
    send: (to, part, sending) => send(sender, to, part, sending),
    react: (to, id, emoji, { signal }) => react(base, to, id, emoji, signal),
    edit: (to, id, part, sending) => edit(sender, to, id, part, sending),
    remove: (to, id, sending) => remove(sender, to, id, sending),

    async stop() {
      stopping.abort();
      await listening?.done;
      answers.close();
      await presses.close();
      api.close();
    },

    async setTyping(to) {
      try {
        await api.call({ method: 'POST', path: `/channels/${roomOf(to)}/typing` });
      } catch (error) {
        log.debug({ channel: 'discord', reason: failureOf(error).reason }, 'typing was not shown');
      }
    },

    fetch: (attachment, ask) => fetchFile(base, attachment, { ...ask, apiRoot: options.apiRoot, outward }),

    awaitsAnswer: answers.awaits,

    isAdministrator: (chat, sender) =>
      orFault(`Discord could not be asked who manages the server of the channel ${chat}`, () =>
        isAdministrator(chat, sender),
      ),

    async announceCommands(commands) {
      await orFault('The chat commands could not be made known to Discord', async () => {
        const application = read.application(await api.get('/oauth2/applications/@me'));
        if (application === undefined) throw new Error('Discord does not say which application this is');
        const path = `/applications/${application.id}/commands`;
        await api.call({ method: 'PUT', path, body: applicationCommands(commands) });
      });
    },

    survives(error) {
      if (!(error instanceof Error) || !OF_THE_LIBRARY.test(error.stack ?? '')) return false;
      listening?.fail(`the library for Discord failed: ${describe(error)}`);
      return true;
    },

    check: () => orFault('Discord does not let the bot of channels.discord.token in', () => check(base)),
  };
}
