/** The question to owners about a call of an agent: about its whole run, or where they refused that, about this call. */
import { type AskedCall, isAboutRun, type NewQuestion } from '../../core/access.js';
import { personaName } from '../../core/persona.js';
import type { WorkAsk } from '../../core/task.js';
import { questionAbout, sentence, shownName, wordsOfQuestion } from '../question.js';
import type { Services } from '../services.js';
import type { Whose } from './whose.js';

const TITLE_CHARS = 200;
const PATH_CHARS = 300;

export async function questionOf(
  services: Services,
  whose: Whose,
  { task, place }: Pick<WorkAsk, 'task' | 'place'>,
  call: AskedCall,
): Promise<NewQuestion> {
  const title = task.request.viap?.title;
  const named = shownName(typeof title === 'string' && title.trim() !== '' ? title : task.goal, TITLE_CHARS);
  const wants = [
    `The agent ${shownName(place.id)} works on the task ${named} for ${await giverOf(services, whose, task.parent === null)}.`,
    `It wants to call ${shownName(call.tool)}. ${sentence(call.why)}`,
    `It reaches these folders: ${place.roots.map((root) => shownName(root, PATH_CHARS)).join(', ')}.`,
  ].join('\n\n');
  const yes = isAboutRun(call) ? 'To allow the whole run' : 'To allow it once';
  return questionAbout(services, whose, call, wordsOfQuestion(call, { wants, yes, env: place.env }));
}

async function giverOf(services: Services, { chat, personaId }: Whose, isProgram: boolean): Promise<string> {
  if (isProgram) return 'a program';
  const name = personaName(await services.personas.list(chat.id), personaId);
  return `${shownName(name)} in the chat ${shownName(chat.title)} (${shownName(chat.id)})`;
}
