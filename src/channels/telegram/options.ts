/** The keys of `channels.telegram` in config.yaml that only Telegram has. */
import * as z from 'zod';
import { apiAddress, choice, expected, type OptionsOf, rate, webAddress } from '../kit/descriptor.js';

const TOKEN = expected("a bot's token, as @BotFather gave it");
const token = z
  .string(TOKEN)
  .trim()
  .regex(/^[^\s/?#]+$/, TOKEN);

/** The part before the colon is the bot's id; ids of messages that only this bot knows contain it. */
const personaToken = token.regex(/^\d{1,15}:/, TOKEN);

export const telegramOptions = z
  .object(
    {
      token,
      api_root: apiAddress('the address of a Bot API server', 'https://api.telegram.org'),
      mode: choice('polling', 'webhook').default('polling'),
      webhook_url: webAddress('the public address that leads to /telegram/webhook').nullable().default(null),
      webhook_secret: z
        .string(expected('1 to 256 letters, digits, _ or -'))
        .regex(/^[A-Za-z0-9_-]{1,256}$/, expected('1 to 256 letters, digits, _ or -'))
        .nullable()
        .default(null),
      // Persona id to the token of that persona's own bot.
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

export type TelegramOptions = OptionsOf<typeof telegramOptions>;
