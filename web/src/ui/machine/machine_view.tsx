// SPDX-License-Identifier: Apache-2.0
/**
 * machine_view.tsx - Machine: what was found, what to do about what was not, and two measurements
 * and a self-check on a click.
 */
import { useEffect, useState } from 'preact/hooks';
import type { Engine } from '../../lib/index';
import type { Check } from '../../lib/types';
import { useEngine } from '../engine';
import { plainError } from '../plain_error';
import { bytes } from '../format';
import { Button } from '../parts/button';
import { Card, Disclosure } from '../parts/card';
import { Icon } from '../parts/icon';
import { Notice } from '../parts/notice';
import { Bar, Stat } from '../parts/stat';
import { P, Words } from '../parts/term';
import { notify } from '../state/notices';
import { useRun } from '../state/run';
import { Wait } from '../parts/wait';
import { useJob } from '../think/watch';
import { pageFacts, type PageFacts } from './facts';
import { findings, type Finding } from './findings';
import './machine.css';

const STATE_WORDS: Record<Finding['state'], string> = {
  good: 'good',
  less: 'could be better',
  missing: 'missing',
  plain: 'for your information',
};
const STATE_ICONS = { good: 'check', less: 'warning', missing: 'close', plain: 'info' } as const;

function FindingRow({
  finding,
  onAction,
}: {
  finding: Finding;
  onAction: (action: NonNullable<Finding['action']>) => void;
}) {
  const { name, state, value, advice, action } = finding;
  return (
    <div class={`machine-finding machine-${state}`}>
      <dt>
        <span class="machine-state" title={STATE_WORDS[state]}>
          <Icon name={STATE_ICONS[state]} size={18} />
          <span class="unseen">{STATE_WORDS[state]}: </span>
        </span>
        <span>
          <Words>{name}</Words>
        </span>
      </dt>
      <dd>
        <p class="machine-value">{value}</p>
        <P class="muted small">{advice}</P>
        {action === 'persist' && (
          <Button onClick={() => onAction(action)}>Ask the browser to keep it</Button>
        )}
        {action === 'reload' && <Button onClick={() => onAction(action)}>Reload now</Button>}
      </dd>
    </div>
  );
}

/** How much is read for the bandwidth: more than any cache holds. */
const READ_BYTES = 256 * 1024 * 1024;

function Measure({ engine }: { engine: Engine }) {
  const [peak, setPeak] = useState<number | null>(null);
  const [read, setRead] = useState<number | null>(null);
  const [memory, setMemory] = useState<number | null>(null);
  const [onGpu, setOnGpu] = useState(0);
  const [gpu, setGpu] = useState<Awaited<ReturnType<Engine['measureGpu']>> | null>(null);
  const timed = engine.info.gpu !== undefined && !engine.info.gpu.software;
  const job = useJob();
  const training = useRun((s) => s.phase === 'running');
  const measure = () =>
    job.start(async (signal) => {
      const gflops = await engine.measurePeak();
      if (signal.aborted) return;
      setPeak(gflops);
      const rate = await engine.measureRead(READ_BYTES);
      if (signal.aborted) return;
      setRead(rate);
      if (timed) setGpu(await engine.measureGpu());
      if (signal.aborted) return;
      setMemory(await engine.memoryBytes());
      setOnGpu(await engine.gpuBytes());
    });
  return (
    <Card title="How fast it is" aside="A second or two of full load.">
      <dl class="stats">
        <Stat
          name="Multiplying, at most"
          value={peak === null ? '–' : `${peak.toFixed(1)} GFLOP/s`}
          note="all threads, without reading memory"
        />
        <Stat
          name="Reading memory"
          value={read === null ? '–' : `${(read / 1e9).toFixed(1)} GB/s`}
          note="all threads"
        />
        <Stat name="In use by the engine" value={memory === null ? '–' : bytes(memory)} />
        {timed && (
          <Stat
            name="Product on the GPU"
            value={gpu === null ? '–' : `${gpu.gflops.toFixed(0)} GFLOP/s`}
            note="a large matrix, 32-bit floats"
          />
        )}
        {timed && (
          <Stat
            name="Memory of the GPU"
            value={gpu === null ? '–' : `${(gpu.bytesPerSecond / 1e9).toFixed(0)} GB/s`}
            note="additions of large arrays"
          />
        )}
        {onGpu > 0 && <Stat name="In use on the GPU" value={bytes(onGpu)} />}
      </dl>
      <div class="row">
        {job.running ? (
          <Wait words="Measuring" onCancel={job.cancel} />
        ) : (
          <Button icon="gauge" onClick={measure}>
            {peak === null ? 'Measure' : 'Measure again'}
          </Button>
        )}
        {training && (
          <span class="quiet">A run in progress shares the machine: pause it for a true number.</span>
        )}
      </div>
      {job.error !== null && <Notice kind="error">{plainError(job.error)}</Notice>}
    </Card>
  );
}

/** How many cases there are, about: only for the length of a bar. */
const USUAL_CASES = 2100;

function SelfCheck({ engine }: { engine: Engine }) {
  const [failed, setFailed] = useState<Check[]>([]);
  const [seen, setSeen] = useState(0);
  const [ops, setOps] = useState<ReadonlyMap<string, number>>(new Map());
  const [result, setResult] = useState<{ passed: number; failed: number } | null>(null);
  const job = useJob();
  const run = () =>
    job.start(async (signal) => {
      const bad: Check[] = [];
      const byOp = new Map<string, number>();
      let n = 0;
      setFailed([]);
      setResult(null);
      setSeen(0);
      const found = await engine.checkKernels(
        (check) => {
          n++;
          byOp.set(check.op, (byOp.get(check.op) ?? 0) + 1);
          if (!check.passed) bad.push(check);
          // Hundreds come in a second; drawing one in twenty is enough.
          if (n % 20 === 0) setSeen(n);
        },
        { signal },
      );
      setSeen(n);
      setFailed(bad);
      setOps(byOp);
      setResult(found);
    });
  return (
    <Card
      title="Does it compute right?"
      aside={
        engine.info.gpu
          ? 'What the engine computes on this GPU, against slow and simple code.'
          : 'What the engine computes here, against slow and simple code.'
      }
    >
      <div class="row">
        {job.running ? (
          <Button icon="stop" onClick={job.cancel}>
            Cancel
          </Button>
        ) : (
          <Button icon="shield" onClick={run}>
            {result ? 'Check again' : 'Check it'}
          </Button>
        )}
        <span class="quiet number" role="status">
          {job.running ? `${seen} cases so far` : result ? '' : 'Takes some seconds.'}
        </span>
      </div>
      {job.running && <Bar label="Checking" share={seen / Math.max(seen + 100, USUAL_CASES)} />}
      {result && (
        <Notice kind={result.failed === 0 ? 'good' : 'error'}>
          {result.failed === 0
            ? `All ${result.passed} cases of ${ops.size} operations agree.`
            : `${result.failed} of ${result.passed + result.failed} cases differ from their ` +
              'reference by more than they may. Do not trust numbers from this browser on this machine, and ' +
              'please report it.'}
        </Notice>
      )}
      {failed.length > 0 && (
        <div class="table-wrap" tabIndex={0} role="region" aria-label="Cases that differ">
          <table class="table">
            <thead>
              <tr>
                <th>Operation</th>
                <th>Case</th>
                <th class="right">Error</th>
                <th class="right">Allowed</th>
              </tr>
            </thead>
            <tbody>
              {failed.slice(0, 100).map((c) => (
                <tr key={`${c.op} ${c.what}`}>
                  <td>{c.op}</td>
                  <td>{c.what}</td>
                  <td class="right">{c.error.toExponential(1)}</td>
                  <td class="right">{c.tolerance.toExponential(1)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {job.error !== null && <Notice kind="error">{plainError(job.error)}</Notice>}
    </Card>
  );
}

export default function MachineView() {
  const { engine, info, status, error } = useEngine();
  const [page, setPage] = useState<PageFacts | null>(null);
  const refresh = () => void pageFacts().then(setPage);
  useEffect(() => {
    refresh();
    addEventListener('online', refresh);
    addEventListener('offline', refresh);
    return () => {
      removeEventListener('online', refresh);
      removeEventListener('offline', refresh);
    };
  }, []);
  const act = async (action: NonNullable<Finding['action']>) => {
    if (action === 'reload') {
      location.reload();
      return;
    }
    const granted = await navigator.storage.persist().catch(() => false);
    notify(
      granted ? 'good' : 'warning',
      granted
        ? 'The browser will keep what is saved here.'
        : 'The browser did not agree. Installing the page, or a bookmark, often changes its mind.',
    );
    refresh();
  };
  return (
    <div class="stack">
      {status === 'failed' && <Notice kind="error">{error}</Notice>}
      {page &&
        findings(info, page).map((group) => (
          <Card key={group.title} title={group.title}>
            <dl class="machine-findings">
              {group.findings.map((f) => (
                <FindingRow key={f.id} finding={f} onAction={(action) => void act(action)} />
              ))}
            </dl>
          </Card>
        ))}
      {engine && <Measure engine={engine} />}
      {engine && <SelfCheck engine={engine} />}
      {info && (
        <Card title="In the engine's own words">
          <pre class="machine-banner" tabIndex={0}>
            {info.banner}
          </pre>
          <Disclosure summary={`${info.levers.length} levers`}>
            <div class="table-wrap" tabIndex={0} role="region" aria-label="Levers">
              <table class="table">
                <thead>
                  <tr>
                    <th>Lever</th>
                    <th>On</th>
                    <th>What it does</th>
                    <th>State</th>
                  </tr>
                </thead>
                <tbody>
                  {info.levers.map((l) => (
                    <tr key={l.name}>
                      <td>
                        <code>{l.name}</code>
                      </td>
                      <td>{l.on ? 'yes' : 'no'}</td>
                      <td>{l.doc}</td>
                      <td>{l.state}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </Disclosure>
        </Card>
      )}
    </div>
  );
}
