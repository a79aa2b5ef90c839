/** Tokens and money of the last thirty days, and how full today's limits are. */
import { useState } from 'preact/hooks';
import type { UsageNow } from '../../../src/board/protocol-operations.ts';
import { useTexts } from '../app.ts';
import { chatName } from '../kit/chats.ts';
import { Meter } from '../kit/meter.tsx';
import { Plot } from '../kit/plot.tsx';
import { languageOfPage } from '../kit/words.ts';
import { filled } from '../texts/texts.ts';
import { Box, useReading } from './parts.tsx';
import { visible } from './symbols.ts';

type Unit = 'tokens' | 'money';
const MILLION = 1_000_000;
const REREAD_MS = 60_000;

export function Usage() {
  const { operations, kit } = useTexts();
  const { answer } = useReading<UsageNow>('api/board/operations/usage', REREAD_MS);
  const [unit, setUnit] = useState<Unit>('tokens');
  if (answer === null) return <Box title={operations.usage} />;
  const { days, chats, personas, budgets, hasMoney } = answer;
  const total = days.reduce((sum, day) => sum + amountIn(day, unit), 0);
  const unitWords = unit === 'tokens' ? operations.tokens : operations.money;
  const amount = (value: number) => numberOf(unit).format(value);
  const fullest = Math.max(0, ...budgets.map(({ used, most }) => (most > 0 ? used / most : 1)));
  const label = new Intl.DateTimeFormat(languageOfPage(), {
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
  });
  return (
    <Box
      title={operations.usage}
      level={fullest >= 1 ? 'warn' : 'good'}
      line={filled(operations.inThirtyDays, { n: amount(total), unit: unitWords })}
    >
      {hasMoney && (
        <label class="unit">
          {operations.countedIn}
          <select value={unit} onChange={(event) => setUnit(event.currentTarget.value as Unit)}>
            <option value="tokens">{operations.tokens}</option>
            <option value="money">{operations.money}</option>
          </select>
        </label>
      )}
      {budgets.map(({ key, unit: of, most, used, of: whose }) => (
        <div key={key} class="stack tight">
          <Meter
            label={key}
            value={used}
            most={most}
            words={filled(operations.budget, {
              key: `limits.${key}`,
              used: numberOf(of).format(of === 'money' ? used / MILLION : used),
              most: numberOf(of).format(of === 'money' ? most / MILLION : most),
              whose: whose === null ? operations.allChats : visible(whose, true),
            })}
          />
        </div>
      ))}
      <Plot
        title={filled(operations.plotTitle, { unit: unitWords, n: amount(total) })}
        unit={unitWords}
        points={days.map((day) => ({ label: label.format(Date.parse(day.day)), value: amountIn(day, unit) }))}
        isTableOpen
      />
      <div class="pair">
        <Spenders
          title={operations.byChat}
          rows={chats.map((each) => ({
            name: chatName(each.id, each.title ?? each.id, kit.mainChat),
            value: amountIn(each, unit),
          }))}
          amount={amount}
        />
        <Spenders
          title={operations.byPersona}
          rows={personas.map((each) => ({ name: each.id, value: amountIn(each, unit) }))}
          amount={amount}
        />
      </div>
    </Box>
  );
}

function Spenders({
  title,
  rows,
  amount,
}: {
  title: string;
  rows: { name: string; value: number }[];
  amount: (value: number) => string;
}) {
  if (rows.length === 0) return null;
  return (
    <div class="scrolls">
      <table>
        <caption>{title}</caption>
        <tbody>
          {rows.map(({ name, value }, n) => (
            <tr key={n}>
              <th scope="row" class="words">
                {visible(name, true)}
              </th>
              <td class="number">{amount(value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function amountIn({ tokens, cost }: { tokens: number; cost: number }, unit: Unit): number {
  return unit === 'tokens' ? tokens : cost / MILLION;
}

function numberOf(unit: Unit): Intl.NumberFormat {
  return new Intl.NumberFormat(languageOfPage(), { maximumFractionDigits: unit === 'tokens' ? 0 : 4 });
}
