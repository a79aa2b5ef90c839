/** `channels.discord` of config.yaml. Keys common to all channels (`access`) are added elsewhere. */
import * as z from 'zod';
import { type Camel, expected, rate, truth, whole } from '../kit/descriptor.js';

const PUBLIC_API = 'https://discord.com/api';
/** Of about a thousand servers each: more than any one bot has. */
const MOST_SHARDS = 1_000;
const TOKEN = "a bot's token, as the page Bot of Discord's developer portal shows it once";

export const discordOptions = z.object(
  {
    token: z
      .string(expected(TOKEN))
      .trim()
      // Some documentation writes it in the form of a header.
      .transform((token) => token.replace(/^Bot\s+/i, ''))
      .pipe(z.string().regex(/^[^\s/?#]+$/, expected(TOKEN))),
    // Up to and including `/api`, without a trailing slash.
    api_root: z
      .url({ protocol: /^https?$/, ...expected(`the address of Discord's API, like ${PUBLIC_API}`) })
      .transform((address) => address.replace(/(?<!\/)\/+$/, ''))
      .default(PUBLIC_API),
    // Whether messages of other bots and webhooks are accepted.
    bots: truth().default(false),
    // When a persona shows its own name and picture: always, or in a chat with several.
    faces: z.enum(['always', 'company'], expected('always or company')).default('always'),
    // Connections to Discord's gateway, each for a part of the servers; `auto`: as Discord recommends at first.
    shards: z
      .union(
        [z.literal('auto'), whole(1, MOST_SHARDS)],
        expected(`auto, or a whole number from 1 to ${MOST_SHARDS}`),
      )
      .default('auto'),
    messages_per_second: rate().default(50),
    per_chat_burst: rate().default(5),
  },
  expected('keys and values'),
);

export type DiscordOptions = Camel<z.output<typeof discordOptions>> & {
  /** Whether Discord may fetch the links in our messages. */
  linkPreviews: boolean;
};
