/** Step 5 of the route: the question to people about a call of a persona's turn. */
import type { AskedCall, NewQuestion } from '../../core/access.js';
import { personaName } from '../../core/persona.js';
import { questionAbout, sentence, shownName, wordsOfQuestion } from '../question.js';
import type { RoomServices, Turn } from './room-services.js';

export function questionOf(services: RoomServices, work: Turn, call: AskedCall): Promise<NewQuestion> {
  const { chat, room, personas, turn } = work;
  const { controlChats } = services.rulesFor(chat.channel);
  const who = `${shownName(personaName(personas, turn.personaId))} in the chat ${shownName(chat.title)} (${shownName(chat.id)})`;
  const wants = `${who} wants to call ${shownName(call.tool)}. ${sentence(call.why)}`;
  const words = wordsOfQuestion(call, { wants, yes: 'To allow it once' });
  return questionAbout(services, { chat, room, controlChats }, call, words);
}
