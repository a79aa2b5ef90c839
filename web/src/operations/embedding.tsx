/** How memory is searched: by keywords, or by meaning too, and how far the index has come. */
import type { EmbeddingNow } from '../../../src/board/protocol-operations.ts';
import { useTexts } from '../app.ts';
import { Meter } from '../kit/meter.tsx';
import { languageOfPage } from '../kit/words.ts';
import { filled } from '../texts/texts.ts';
import { Box, When } from './parts.tsx';
import { visible } from './symbols.ts';

export function Embedding({ embedding }: { embedding: EmbeddingNow }) {
  const { operations } = useTexts();
  const { level, backend, model, place, breaker, queue, pieces } = embedding;
  const number = new Intl.NumberFormat(languageOfPage());
  const { indexed, waiting, withVector } = pieces;
  const line =
    backend === 'off'
      ? filled(operations.keywordsOnly, { n: number.format(indexed) })
      : filled(breaker?.kind === 'open' ? operations.keywordsMeanwhile : operations.byMeaning, {
          n: number.format(indexed),
        });
  const facts: [name: string, words: string][] = [
    [operations.backend, backend],
    ...(model === null ? [] : [[operations.model, model] as [string, string]]),
    ...(place === null ? [] : [[operations.place, place] as [string, string]]),
    [operations.toIndex, number.format(waiting)],
  ];
  if (breaker?.kind === 'closed') facts.push([operations.breaker, operations.breakerClosed]);
  if (backend === 'redis') {
    facts.push([operations.queue, queue === null ? operations.unknown : number.format(queue.waiting)]);
    if (queue !== null) {
      const answered = queue.answeredAt === null ? '' : `, ${operations.answered} ${clock(queue.answeredAt)}`;
      facts.push([operations.workers, `${number.format(queue.workers)}${answered}`]);
      if (queue.model !== null) facts.push([operations.workersModel, queue.model]);
      if (queue.parked > 0) facts.push([operations.parkedJobs, number.format(queue.parked)]);
    }
  }
  return (
    <Box title={operations.embedding} level={level} line={line}>
      {breaker?.kind === 'open' && (
        <div class="stack tight">
          <p>
            {operations.embeddingFails} {operations.since} <When at={breaker.since} />.
          </p>
          <p class="soft small words">
            {operations.lastError}: {visible(breaker.reason, true)}
          </p>
        </div>
      )}
      {backend !== 'off' && (
        <Meter
          label={operations.vectors}
          value={withVector}
          most={Math.max(1, indexed)}
          words={filled(operations.vectorsOf, { n: number.format(withVector), all: number.format(indexed) })}
        />
      )}
      <details open={level !== 'good'}>
        <summary class="small">{operations.details}</summary>
        <dl class="facts">
          {facts.map(([name, words]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd class="words">{words}</dd>
            </div>
          ))}
        </dl>
      </details>
    </Box>
  );
}

function clock(at: number): string {
  return new Intl.DateTimeFormat(languageOfPage(), { timeStyle: 'medium' }).format(at);
}
