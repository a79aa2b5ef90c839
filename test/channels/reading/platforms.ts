/** A Markdown source as people see it on every platform, letter by letter. */
import { TABLE_WIDTH as DISCORD_TABLE, discordText } from '../../../src/channels/markdown/discord.js';
import { parse } from '../../../src/channels/markdown/parse.js';
import { TABLE_WIDTH as WHATSAPP_TABLE, whatsappText } from '../../../src/channels/markdown/whatsapp.js';
import { sendRequest, TABLE_WIDTH as TELEGRAM_TABLE } from '../../../src/channels/telegram/outbound.js';
import { refusalOf } from '../../fakes/telegram-limits.js';
import { readDiscord } from './discord.js';
import type { Letter } from './seen.js';
import { readWhatsApp } from './whatsapp.js';

const ANNA = { address: '100001', threadId: null, kind: 'direct' as const };
const discord = (source: string) => discordText(parse(source, { tableWidth: DISCORD_TABLE }));

export const SEEN: Record<string, (source: string) => Letter[]> = {
  telegram: (source) => telegram(source),
  'discord on a desktop': (source) => readDiscord(discord(source), 'desktop'),
  'discord on a telephone': (source) => readDiscord(discord(source), 'telephone'),
  whatsapp: (source) => readWhatsApp(whatsappText(parse(source, { tableWidth: WHATSAPP_TABLE }))),
};

/** By the entities of the request, which the Bot API must not refuse. */
function telegram(source: string): Letter[] {
  const request = sendRequest(ANNA, parse(source, { tableWidth: TELEGRAM_TABLE }), false);
  const refusal = request.text.length > 4096 ? null : refusalOf({ ...request });
  if (refusal !== null) throw new Error(`${refusal}: ${JSON.stringify(request)}`);
  const names: Record<string, string> = { strikethrough: 'strike', blockquote: 'quote', text_link: 'link' };
  let at = 0;
  return [...request.text].map((letter) => {
    const here = (request.entities ?? []).filter(
      ({ offset, length }) => offset <= at && at < offset + length,
    );
    at += letter.length;
    return { letter, styles: new Set(here.map(({ type }) => names[type] ?? type)) };
  });
}
