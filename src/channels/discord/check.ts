/** For `doctor`: logs in, and names what Discord's settings forbid. */
import type { Base } from './api.js';
import { failureOf } from './failure.js';
import { read } from './payload.js';

/** Of an application: it may read what is said. The second is that of bots in few servers. */
const MESSAGE_CONTENT = (1 << 18) | (1 << 19);
/** View channels, send messages (in threads, too), embed links, attach files, read the history, manage webhooks. */
const PERMISSIONS = 275_414_895_616n;
const FEW_SESSIONS = 50;

export const NO_CONTENT =
  'the intent Message Content is off, so Discord does not let the bot in: tick it at discord.com/developers/applications, on the page Bot, under Privileged Gateway Intents';

export function mayReadContent(flags: number | undefined): boolean {
  return ((flags ?? 0) & MESSAGE_CONTENT) !== 0;
}

export function inviteLink(applicationId: string): string {
  return `https://discord.com/oauth2/authorize?client_id=${applicationId}&scope=bot+applications.commands&permissions=${PERMISSIONS}`;
}

export async function check({ api }: Base): Promise<{ identity: string; warnings: string[] }> {
  const [me, application, gateway] = await Promise.all([
    api.get('/users/@me').then(read.user),
    api.get('/oauth2/applications/@me').then(read.application),
    api.get('/gateway/bot').then(read.gateway),
  ]);
  if (me === undefined) throw new Error('Discord does not say which bot this is');
  const warnings: string[] = [];
  if (application !== undefined && !mayReadContent(application.flags)) warnings.push(NO_CONTENT);
  const left = gateway?.session_start_limit?.remaining;
  if (left !== undefined && left < FEW_SESSIONS) {
    warnings.push(`only ${left} new sessions are left today; something begins one again and again`);
  }
  const guilds = await api.get('/users/@me/guilds').catch((error) => {
    warnings.push(`it cannot be checked which servers the bot is in: ${failureOf(error).reason}`);
  });
  if (application !== undefined && Array.isArray(guilds) && guilds.length === 0) {
    warnings.push(`the bot is in no server yet; this link invites it: ${inviteLink(application.id)}`);
  }
  return { identity: `${me.global_name || me.username || 'the bot'} (id ${me.id})`, warnings };
}
