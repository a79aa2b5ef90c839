/**
 * Prometheus's text format, read strictly (prometheus.io, "Exposition formats"), and what `promtool check metrics` would
 * object to (prometheus.io, "Metric and label naming").
 */

export interface Family {
  name: string;
  type: string;
  help: string;
  samples: { name: string; labels: Record<string, string>; value: number }[];
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;
const TYPES = ['counter', 'gauge', 'histogram', 'summary'];
const PARTS: Record<string, string[]> = {
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
};

function labelsIn(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const [, name = '', value = ''] = LABEL.exec(text) ?? [];
    if (name === '' || name in labels) throw new Error(`no labels: {${text}}`);
    labels[name] = value.replace(/\\(.)/g, (_, sign: string) => (sign === 'n' ? '\n' : sign));
  }
  return labels;
}

function numberIn(text: string): number {
  // Prometheus reads numbers as Go does, which ignores case here.
  if (/^nan$/i.test(text)) return Number.NaN;
  const infinite = /^([+-]?)Inf(inity)?$/i.exec(text);
  if (infinite) return infinite[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  const value = Number(text);
  if (text === '' || Number.isNaN(value)) throw new Error(`no number: ${text}`);
  return value;
}

/** The metrics by name. Throws for anything that Prometheus would not read. */
export function readMetrics(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const families = new Map<string, Family>();
  let family: Family | null = null;
  for (const line of text.split('\n').filter((each) => each.trim() !== '')) {
    const head = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    if (head === null) {
      if (family === null) throw new Error(`a sample before its type: ${line}`);
      addSample(family, line);
      continue;
    }
    const [, kind, name = '', said = ''] = head;
    if (kind === 'HELP') {
      if (families.has(name)) throw new Error(`${name} comes twice`);
      family = { name, help: said, type: '', samples: [] };
      families.set(name, family);
    } else if (family?.name !== name || !TYPES.includes(said)) throw new Error(`out of place: ${line}`);
    else family.type = said;
  }
  return families;
}

function addSample(family: Family, line: string): void {
  const [, name = '', labelled = '', value = ''] = SAMPLE.exec(line) ?? [];
  const own = (PARTS[family.type] ?? ['']).map((part) => `${family.name}${part}`);
  if (!own.includes(name)) throw new Error(`not of ${family.name}: ${line}`);
  const labels = labelsIn(labelled);
  const key = (of: Record<string, string>) => JSON.stringify(Object.entries(of).sort());
  if (family.samples.some((each) => each.name === name && key(each.labels) === key(labels))) {
    throw new Error(`twice: ${line}`);
  }
  family.samples.push({ name, labels, value: numberIn(value) });
}

const NO_BASE_UNIT =
  /(milli|micro|nano)?seconds_ms|_(ms|millis|milliseconds|minutes|hours|days|kb|mb|kilobytes|percent)(_|$)/;

/** What is against the conventions, a sentence each. */
export function objections(families: Map<string, Family>): string[] {
  return [...families.values()].flatMap(({ name, type, help, samples }) => {
    const isCounter = type === 'counter';
    return [
      ...(help.trim() === '' ? [`${name} has no help`] : []),
      ...(isCounter && !name.endsWith('_total') ? [`${name} is a counter without _total`] : []),
      ...(!isCounter && name.endsWith('_total') ? [`${name} ends with _total and is a ${type}`] : []),
      ...(NO_BASE_UNIT.test(name) ? [`${name} is not in base units`] : []),
      ...(type === 'histogram' ? bucketObjections(name, samples) : []),
    ];
  });
}

function bucketObjections(name: string, samples: Family['samples']): string[] {
  const counts = samples.filter((each) => each.name === `${name}_count`);
  return counts.flatMap(({ labels, value }) => {
    const isOfThese = (each: Family['samples'][number]) =>
      each.name === `${name}_bucket` &&
      Object.entries(labels).every(([label, of]) => each.labels[label] === of) &&
      Object.keys(each.labels).length === Object.keys(labels).length + 1;
    const buckets = samples.filter(isOfThese).map((each) => [numberIn(each.labels.le ?? ''), each.value]);
    const rises = buckets.every(
      ([limit = 0, count = 0], n) =>
        n === 0 || (limit > (buckets[n - 1]?.[0] ?? 0) && count >= (buckets[n - 1]?.[1] ?? 0)),
    );
    const [last, total] = buckets.at(-1) ?? [];
    const isWhole = last === Number.POSITIVE_INFINITY && total === value;
    return rises && isWhole ? [] : [`the buckets of ${name} do not add up`];
  });
}
