/** Step 1 of the route: a message that may be more than words: a command, a choice, or a yes. */
import type { Question } from '../../core/access.js';
import type { InboundMessage } from '../../core/message.js';
import type { ReceiptOf, ReceiptOrigin } from '../../core/receipt.js';
import { COMMAND_NAMES } from '../commands/list.js';
import { isJust, parseCommand } from '../commands/parse.js';
import { importAsked } from '../sent-card.js';
import { hasSkill, SKILL } from '../skill-asked.js';
import { chosenInWords } from './choices.js';
import type { BatchReading } from './reading.js';

/** `said`: the message as words; `question`: the pending question, which it ends. */
export async function withOrders(
  reading: BatchReading,
  message: InboundMessage,
  said: ReceiptOf<'message'>,
  origin: ReceiptOrigin,
  question: Question | null,
): Promise<ReceiptOf<'message' | 'command' | 'choice'>> {
  const { services, batch, ended } = reading;
  const { store, channels } = services;
  const { text, mentionsBot, replyTo, sender, addresses, forwardedFrom, chat } = message;
  if (question) ended.add(question.id);
  const answered = question === null ? {} : { endsQuestion: question.id };
  const account = channels.get(batch.channel);
  // Where there are buttons, a number is only a number.
  const offered = account?.buttons ? null : await chosenInWords(reading, message, origin);
  if (offered !== null && 'kind' in offered) return { ...offered, ...answered };
  const ends = { ...answered, ...offered };
  // Forwarded words give no orders or answers, and call nobody.
  if (forwardedFrom !== undefined) {
    if (chat.kind === 'group') delete said.addresses;
    return { ...said, mentionsBot: false, ...ends };
  }
  const [persona] = addresses ?? [];
  const to = persona === undefined ? origin : { ...origin, persona };
  const asCommand = { kind: 'command' as const, ...to, ...ends };
  const sent = { mentionsBot, isDirect: chat.kind === 'direct', names: account?.names?.() ?? [] };
  const command = parseCommand(text, COMMAND_NAMES, sent);
  const isSkill = command?.name === SKILL && !sender.bot;
  if (isSkill && (await hasSkill(services, origin, persona, command.argument))) {
    return { ...said, mentionsBot: true, ...ends };
  }
  // Its file is looked at when the room is (rooms/cards.ts).
  if (command && message.attachments?.length && importAsked(text)) {
    return { ...said, mentionsBot: true, ...ends };
  }
  if (command) return { ...asCommand, command };
  if (question && isJust('yes', text, mentionsBot)) {
    return { ...asCommand, command: question.ifYes, answers: question.id };
  }
  // `undo` as a reply to a note on what a turn saved.
  const isUndoing = replyTo !== null && isJust('undo', text, mentionsBot);
  const saved = isUndoing ? await store.notedTurn(origin.chat.id, replyTo.platformMessageId) : null;
  if (saved !== null) return { ...asCommand, command: { name: 'memory', argument: `undo ${saved}` } };
  return { ...said, ...ends };
}
