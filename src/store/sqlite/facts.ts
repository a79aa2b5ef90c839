/** The small facets: further ids of chats, sums of usage, settings. */
import { and, asc, eq, gte, sql } from 'drizzle-orm';
import type { AliasStore, SettingStore, UsageStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import { startOfDay } from './rows.js';
import { alias, setting, usage } from './schema.js';

const given = sql.placeholder;

export function factStore({ query, read, write }: Connection): AliasStore & UsageStore & SettingStore {
  const findAlias = query
    .select({ chatId: alias.chatId })
    .from(alias)
    .where(eq(alias.id, given('id')))
    .prepare();

  return {
    aliasOf: (id) => read(() => findAlias.get({ id })?.chatId ?? null),
    addAlias: (id, chatId) =>
      write(
        () =>
          void query
            .insert(alias)
            .values({ id, chatId })
            .onConflictDoUpdate({ target: alias.id, set: { chatId } })
            .run(),
      ),

    usage: (chatId, since) =>
      read(() =>
        query
          .select({
            personaId: usage.personaId,
            turns: sql<number>`sum(${usage.turns})`,
            inputTokens: sql<number>`sum(${usage.inputTokens})`,
            outputTokens: sql<number>`sum(${usage.outputTokens})`,
          })
          .from(usage)
          .where(and(eq(usage.chatId, chatId), gte(usage.day, startOfDay(since))))
          .groupBy(usage.personaId)
          .orderBy(asc(usage.personaId))
          .all()
          .map(({ personaId, turns, ...tokens }) => ({ personaId, turns, usage: tokens })),
      ),

    setting: (key) =>
      read(
        () =>
          query.select({ value: setting.value }).from(setting).where(eq(setting.key, key)).get()?.value ??
          null,
      ),
    setSetting: (key, value) =>
      write(
        () =>
          void query
            .insert(setting)
            .values({ key, value })
            .onConflictDoUpdate({ target: setting.key, set: { value } })
            .run(),
      ),
  };
}
