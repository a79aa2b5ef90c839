/** `channels.telegram` of config.yaml. What every channel has (`access`) is added where the schemas are joined. */
import * as z from 'zod';
import type { PersonaId } from '../../core/ids.js';
import { expected, rate } from '../option-words.js';

const PUBLIC_API = 'https://api.telegram.org';

const token = z
  .string(expected("a bot's token, as @BotFather gave it"))
  .trim()
  .regex(/^[^\s/?#]+$/, expected("a bot's token, as @BotFather gave it"));

/** The bot's id stands before the colon; messages that only it knows are named by it. */
const personaToken = token.regex(/^\d{1,15}:/, expected("a bot's token, as @BotFather gave it"));

export const telegramOptions = z
  .object(
    {
      token,
      api_root: z
        .url({ protocol: /^https?$/, ...expected(`the address of a Bot API server, like ${PUBLIC_API}`) })
        .transform((address) => address.replace(/\/+$/, ''))
        .default(PUBLIC_API),
      mode: z.enum(['polling', 'webhook'], expected('one of polling, webhook')).default('polling'),
      webhook_url: z
        .url({ protocol: /^https?$/, ...expected('the public address that leads to /telegram/webhook') })
        .nullable()
        .default(null),
      webhook_secret: z
        .string(expected('1 to 256 letters, digits, _ or -'))
        .regex(/^[A-Za-z0-9_-]{1,256}$/, expected('1 to 256 letters, digits, _ or -'))
        .nullable()
        .default(null),
      persona_tokens: z
        .record(z.string(), personaToken, expected('persona ids with the token of a bot each'))
        .default({}),
      messages_per_second: rate().default(30),
      per_chat_burst: rate().default(20),
    },
    expected('keys and values'),
  )
  .superRefine((options, context) => {
    const taken = new Set([options.token]);
    for (const [personaId, personaToken] of Object.entries(options.persona_tokens)) {
      if (taken.has(personaToken)) {
        const path = ['persona_tokens', personaId];
        context.addIssue({ code: 'custom', path, message: 'expected a bot that no other token is of' });
      }
      taken.add(personaToken);
    }
    if (options.mode !== 'webhook') return;
    for (const key of ['webhook_url', 'webhook_secret'] as const) {
      if (options[key] === null) {
        context.addIssue({ code: 'custom', path: [key], message: `expected a value, since mode is webhook` });
      }
    }
  });

/** The same in the words of the code. */
export interface TelegramOptions {
  token: string;
  /** Without a slash at its end. */
  apiRoot: string;
  mode: 'polling' | 'webhook';
  webhookUrl: string | null;
  webhookSecret: string | null;
  /** Of personas that have a bot of their own. */
  personaTokens: Readonly<Record<PersonaId, string>>;
  messagesPerSecond: number;
  perChatBurst: number;
}
