/** For `doctor`: logs in, and warns of settings at Telegram that are in the way. */
import type { Bot, Bots } from './bots.js';
import type { TelegramOptions } from './options.js';

export async function check(
  { main: { api }, personas }: Bots,
  { mode, webhookUrl, access }: TelegramOptions,
): Promise<{ identity: string; warnings: string[] }> {
  const servesGroups = access.groups !== 'closed';
  const [me, hook] = await Promise.all([
    api.call((raw, ended) => raw.getMe(ended)),
    api.call((raw, ended) => raw.getWebhookInfo(ended)),
  ]);
  const warnings: string[] = [];
  if (servesGroups && !me.can_read_all_group_messages) {
    warnings.push(
      'privacy mode is on: in groups the bot sees only commands, replies to it and messages that name it, so personas do not know what was said in between. ' +
        'Turn it off with /setprivacy at @BotFather, then take the bot out of each group and add it again (or make it an administrator there)',
    );
  }
  if (servesGroups && me.can_join_groups === false) {
    warnings.push('the bot cannot be added to groups; /setjoingroups at @BotFather allows it');
  }
  if (hook.url && mode === 'polling') {
    warnings.push(
      `a webhook is set (at ${hostOf(hook.url)}); the gateway removes it when it starts, and keeps what waits`,
    );
  }
  if (hook.url && mode === 'webhook' && hook.url !== webhookUrl) {
    warnings.push(`another webhook is set (at ${hostOf(hook.url)}); the gateway replaces it when it starts`);
  }
  if (mode === 'webhook' && hook.url === webhookUrl && hook.last_error_message) {
    warnings.push(`Telegram's last call of the webhook failed: ${hook.last_error_message}`);
  }
  if (hook.pending_update_count > 0) {
    const waiting = hook.pending_update_count;
    warnings.push(`${waiting} ${waiting === 1 ? 'update waits' : 'updates wait'} to be taken in`);
  }
  const others = await Promise.all(personas.map((bot) => checkPersona(bot, servesGroups)));
  const names = others.map(({ identity }) => identity).filter((name) => name !== null);
  return {
    identity: [`@${me.username} (${me.first_name}, id ${me.id})`, ...names].join(', '),
    warnings: [...warnings, ...others.flatMap((other) => other.warnings)],
  };
}

/** A fault of a persona's bot is only a warning: without it the main bot speaks for the persona. */
async function checkPersona(
  { api, personaId }: Bot,
  servesGroups: boolean,
): Promise<{ identity: string | null; warnings: string[] }> {
  try {
    const me = await api.call((raw, ended) => raw.getMe(ended));
    const warnings =
      servesGroups && me.can_join_groups === false
        ? [`@${me.username}, the bot of ${personaId}, cannot be added to groups; /setjoingroups allows it`]
        : [];
    return { identity: `@${me.username} as ${personaId}`, warnings };
  } catch (error) {
    const { reason } = api.failure(error);
    return { identity: null, warnings: [`the bot of the persona ${personaId} is not let in: ${reason}`] };
  }
}

/** The rest of somebody's webhook address may be a secret. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'an address that is not one';
}
