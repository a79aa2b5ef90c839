/** The dashboard, the alerts and docs/monitoring.md name what the real gateway prints, and no more. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Family, readMetrics } from '../harness/exposition.js';
import { eventually, type Home, makeHome, run } from '../harness/gateway.js';

interface Panel {
  id: number;
  type: string;
  title: string;
  description?: string;
  gridPos: { x: number; w: number };
  targets?: { expr: string; legendFormat: string }[];
}

const read = (path: string) => readFile(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');
/** Labels that Prometheus itself adds, and those of a histogram. */
const OF_PROMETHEUS = ['job', 'instance', 'le'];
const PARTS = /_(bucket|sum|count)$/;

let families: Map<string, Family>;
let panels: Panel[];
let alerts: { alert: string; expr: string; annotations: { summary: string } }[];
/** As docs/monitoring.md says: the labels of each metric. */
let documented: Map<string, string[]>;

beforeAll(async () => {
  const home: Home = await makeHome({ board: { port: 0 } });
  const gateway = run(home, ['start']);
  try {
    await gateway.saw('coterie is up');
    const url = await gateway.url();
    const text = await eventually(async () => {
      const answer = await fetch(`${url}/metrics`);
      const said = await answer.text();
      return answer.status === 200 ? said : null;
    }, 'the metrics');
    families = readMetrics(text);
  } finally {
    await gateway.stop();
    await home.remove();
  }
  const dashboard = JSON.parse(await read('deploy/grafana/coterie.json')) as { panels: Panel[] };
  panels = dashboard.panels;
  const rules = parse(await read('deploy/prometheus/coterie-alerts.yml'));
  alerts = rules.groups.flatMap(({ rules }: { rules: typeof alerts }) => rules);
  const rows = [...(await read('docs/monitoring.md')).matchAll(/^\| (`coterie_[^|]+) \|([^|]*)\|/gm)];
  documented = new Map(
    rows.flatMap(([, names = '', labels = '']) =>
      quoted(names).map((name): [string, string[]] => [name, quoted(labels)]),
    ),
  );
});

const quoted = (text: string) => [...text.matchAll(/`(\w+)`/g)].map(([, word = '']) => word);

/** The metrics that an expression reads, each with the labels by which it selects. */
function selectorsOf(expr: string): { name: string; labels: string[] }[] {
  return [...expr.matchAll(/\b((?:coterie|process|nodejs)_\w+|up)\b(?:\{([^}]*)\})?/g)].map(
    ([, name = '', selected = '']) => ({
      name,
      labels: [...selected.matchAll(/(\w+)\s*[!=]~?=?\s*"/g)].map(([, label = '']) => label),
    }),
  );
}

function familyOf(name: string): Family | undefined {
  return families.get(name) ?? families.get(name.replace(PARTS, ''));
}

/** Labels that an expression groups by, or that its legend shows. */
function shownLabels(expr: string, legend = ''): string[] {
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = '']) => labels.split(/,\s*/));
  return [
    ...grouped,
    ...[...legend.matchAll(/\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}/g)].map(([, label = '']) => label),
  ];
}

function mistakes(expr: string, legend?: string): string[] {
  const selectors = selectorsOf(expr);
  const known = selectors.flatMap(
    ({ name }) => documented.get(name.replace(PARTS, '')) ?? documented.get(name) ?? [],
  );
  const allowed = [...known, ...OF_PROMETHEUS];
  const unknown = selectors.filter(({ name }) => name !== 'up' && familyOf(name) === undefined);
  const labels = [...selectors.flatMap((each) => each.labels), ...shownLabels(expr, legend)];
  return [
    ...(selectors.length === 0 ? [`reads no metric: ${expr}`] : []),
    ...unknown.map(({ name }) => `${name} is not printed`),
    ...labels.filter((label) => !allowed.includes(label)).map((label) => `${label} is no label: ${expr}`),
  ];
}

describe('what operators look at', () => {
  it('the dashboard reads metrics and labels that exist', () => {
    const targets = panels.flatMap(({ targets = [] }) => targets);
    expect(targets.length).toBeGreaterThan(30);
    expect(targets.flatMap(({ expr, legendFormat }) => mistakes(expr, legendFormat))).toEqual([]);
  });

  it('each panel says what it shows, has a number of its own, and fits', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const shown = panels.filter(({ type }) => type !== 'row');
    expect(shown.filter(({ description, targets }) => !description || !targets?.length)).toEqual([]);
    expect(panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
  });

  it('alerts read metrics and labels that exist', () => {
    expect(alerts.length).toBeGreaterThan(5);
    for (const { expr, annotations } of alerts) expect(mistakes(expr, annotations.summary)).toEqual([]);
  });

  it('the page on monitoring has each metric with its labels, and no other', () => {
    const own = [...families.values()].filter(({ name }) => name.startsWith('coterie_'));
    expect([...documented.keys()].sort()).toEqual(own.map(({ name }) => name).sort());
    for (const { name, samples } of own) {
      const labels = new Set(
        samples.flatMap((each) => Object.keys(each.labels)).filter((each) => each !== 'le'),
      );
      for (const label of labels) expect(documented.get(name), name).toContain(label);
    }
  });

  it('a metric or label that does not exist is noticed', () => {
    expect(mistakes('rate(coterie_turns_totals[5m])')).toEqual(['coterie_turns_totals is not printed']);
    expect(mistakes('sum by (chat) (coterie_turns_total)')).toHaveLength(1);
    expect(mistakes('coterie_turns_total{chat="x"}')).toHaveLength(1);
    expect(mistakes('coterie_store_up', '{{chat}}')).toHaveLength(1);
    expect(mistakes('1 + 1')).toHaveLength(1);
  });
});
