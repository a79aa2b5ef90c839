/** Names of personas for somebody who is typing one into a native command. */
import type { Log } from '../../core/log.js';
import type { Address } from '../../core/message.js';
import type { Api } from './api.js';
import { beingTyped, choices } from './commands.js';
import { type Directory, placeOf } from './directory.js';
import { failureOf } from './failure.js';
import type { Interaction } from './payload.js';

/** An answer to an autocompletion. */
const CHOICES = 8;

/** Never rejects: without an answer, people type the name themselves. */
export async function suggest(
  parts: {
    api: Api;
    token: string;
    directory: Directory;
    personaNames(chat: Address): Promise<string[]>;
    log: Log;
  },
  interaction: Interaction,
): Promise<void> {
  const { id, token, data } = interaction;
  const typed = data === undefined ? null : beingTyped(data);
  if (typed === null) return;
  try {
    const names = await parts.personaNames(placeOf(parts.directory, interaction).address);
    const body = { type: CHOICES, data: { choices: choices(names, typed) } };
    await parts.api.call({
      method: 'POST',
      path: `/interactions/${id}/${token}/callback`,
      body,
      anonymous: true,
    });
  } catch (error) {
    const { reason } = failureOf(error, parts.token, token);
    parts.log.debug({ channel: 'discord', reason }, 'no names of personas could be suggested');
  }
}
