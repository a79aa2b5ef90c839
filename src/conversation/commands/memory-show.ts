/** `/memory` and `/memory show`: the tiers and the recent daily log, cut as in the prompt. */
import type { CommandAnswer, CommandCall, CommandServices } from './command.js';
import { activeHere } from './here.js';
import { withFencesClosed } from './quoting.js';

export async function show(
  { command }: CommandCall,
  { personas, memory, zone, clock }: CommandServices,
): Promise<CommandAnswer> {
  const owner = await activeHere(command.chat, personas);
  const today = zone.date(clock.now());
  // In a prompt, unreadable files count as empty; a person who asks must be told instead. Both of these throw.
  await Promise.all([memory.readAll(owner), memory.readDaily(owner.chatId, today)]);
  const { text } = await memory.snapshot(owner);
  const dailyLog = await memory.recentDaily(owner.chatId, today);
  if (text === '' && dailyLog === '') return { text: 'I remember nothing here yet.' };
  const blocks = [
    text && withFencesClosed(text),
    dailyLog && `**Daily log of this chat**\n\n${withFencesClosed(dailyLog)}`,
    'All of it, as files: /memory export',
  ];
  return { text: blocks.filter((block) => block !== '').join('\n\n') };
}
