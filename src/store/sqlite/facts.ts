/** The small ports: aliases of chats, usage totals, settings. */
import { and, asc, eq, gte, sql } from 'drizzle-orm';
import type { AliasStore } from '../../core/access.js';
import type { SettingStore, UsageStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import { startOfDay } from './rows.js';
import { usage } from './schema-work.js';
import type { AddUsage } from './usage.js';

export function factStore(
  { query, raw, memory, patiently, write }: Connection,
  addUsage: AddUsage,
): AliasStore & UsageStore & SettingStore {
  const findAlias = raw.prepare<[string], string>('select chat_id from alias where id = ?').pluck();
  const addAlias = raw.prepare<[string, string]>(`
    insert into alias (id, chat_id) values (?, ?) on conflict do update set chat_id = excluded.chat_id`);
  const findSetting = raw.prepare<[string], string>('select value from setting where key = ?').pluck();
  const setSetting = raw.prepare<[string, string]>(`
    insert into setting (key, value) values (?, ?) on conflict do update set value = excluded.value`);

  return {
    aliasOf: (id) => patiently(() => memory.get(`alias ${id}`, () => findAlias.get(id) ?? null)),
    addAlias: (id, chatId) =>
      write(() => {
        addAlias.run(id, chatId);
        memory.touch(`alias ${id}`);
      }),

    usage: (chatId, since) =>
      patiently(() =>
        query
          .select({
            personaId: usage.personaId,
            turns: sql<number>`sum(${usage.turns})`,
            inputTokens: sql<number>`sum(${usage.inputTokens})`,
            outputTokens: sql<number>`sum(${usage.outputTokens})`,
            cachedTokens: sql<number>`sum(${usage.cachedTokens})`,
          })
          .from(usage)
          .where(and(eq(usage.chatId, chatId), gte(usage.day, startOfDay(since))))
          .groupBy(usage.personaId)
          .orderBy(asc(usage.personaId))
          .all()
          .map(({ personaId, turns, cachedTokens, ...tokens }) => ({
            personaId,
            turns,
            usage: { ...tokens, ...(cachedTokens > 0 && { cachedTokens }) },
          })),
      ),

    spend: ({ room, personaId, usage: used, now }) =>
      write(() => addUsage({ room, personaId }, { turns: 0, ...used }, now)),

    setting: (key) => patiently(() => findSetting.get(key) ?? null),
    setSetting: (key, value) => write(() => void setSetting.run(key, value), 'single'),
  };
}
