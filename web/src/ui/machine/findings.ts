// SPDX-License-Identifier: Apache-2.0
/**
 * findings.ts - the facts as findings that a person can act on: what was found, whether that is as
 * good as it gets, and if not, what to do. Pure: the same facts give the same words.
 */
import type { EngineInfo, GpuInfo } from '../../lib/types';
import { bytes } from '../format';
import type { PageFacts } from './facts';

export interface Finding {
  id: string;
  name: string;
  /** good: nothing to do; less: works, could be better; missing: a part of the page can't work. */
  state: 'good' | 'less' | 'missing' | 'plain';
  value: string;
  /** What it means, or what to do. */
  advice: string;
  /** A button that the view offers. */
  action?: 'persist' | 'reload';
}

export interface FindingGroup {
  title: string;
  findings: Finding[];
}

/** Builds of the engine by what they use of the processor. */
const ENGINES: Readonly<Record<string, string>> = {
  scalar: 'the plain one',
  simd: 'a fast one',
  relaxed: 'the fastest',
};

function computing(info: EngineInfo, page: PageFacts): Finding[] {
  const [kind, mt] = info.build.split('-');
  const threaded = mt === 'mt';
  const cores = page.processors;
  return [
    {
      id: 'build',
      name: 'The engine',
      state: 'plain',
      value: ENGINES[kind ?? ''] ?? info.build,
      advice: `${
        info.notes.length > 0 ? info.notes.join(' ') : 'It is the best there is for this browser.'
      } Its name is ${info.build}.`,
    },
    threaded
      ? {
          id: 'threads',
          name: 'Threads',
          state: 'good',
          value: cores ? `${info.threads} of ${cores} logical processors` : `${info.threads}`,
          advice:
            cores && info.threads < cores
              ? 'More threads than this rarely help: half of the logical ' +
                'processors are usually real cores.'
              : 'Every one of them computes.',
        }
      : {
          id: 'threads',
          name: 'Threads',
          state: cores === 1 ? 'good' : 'less',
          value: 'one',
          advice:
            cores === 1
              ? 'This machine has one processor.'
              : page.isolated
                ? info.notes.length > 0
                  ? 'Why not is said beside the engine.'
                  : 'This browser has no threads. A current version of any browser has them.'
                : 'The page is not isolated, see below. With threads training is faster.',
        },
    kind === 'scalar'
      ? {
          id: 'simd',
          name: 'Several numbers at once (SIMD)',
          state: 'less',
          value: 'no',
          advice:
            'The browser does not know WebAssembly SIMD, which makes training some four times as ' +
            'fast. Every current browser has it: update this one.',
        }
      : {
          id: 'simd',
          name: 'Several numbers at once (SIMD)',
          state: 'good',
          value: 'yes',
          advice: 'Four numbers in one instruction.',
        },
    kind === 'relaxed'
      ? {
          id: 'relaxed',
          name: 'Multiply and add (relaxed SIMD)',
          state: 'good',
          value: 'yes',
          advice: 'Both in one instruction.',
        }
      : {
          id: 'relaxed',
          name: 'Multiply and add (relaxed SIMD)',
          state: 'less',
          value: 'no',
          advice:
            'Current Chromium browsers and Firefox have it; it saves about a fifth of the time.',
        },
    {
      id: 'memory',
      name: 'Memory for the model',
      state: info.maxMemoryBytes >= 4e9 ? 'good' : 'less',
      value: `up to ${bytes(info.maxMemoryBytes)}`,
      advice:
        info.maxMemoryBytes >= 4e9
          ? 'Enough for every size but the last one or two.'
          : 'The browser granted less than 4 GB. Close other tabs and reload, or go smaller.',
    },
    gpuFinding(info, page),
  ];
}

function gpuFinding(info: EngineInfo | null, page: PageFacts): Finding {
  const { gpu } = page;
  const base: Finding = { id: 'gpu', name: 'Graphics card (WebGPU)', state: 'plain', value: gpu.name, advice: '' };
  if (info?.gpu) return { ...base, value: info.gpu.adapter, advice: gpuWords(info.gpu) };
  if (gpu.state !== 'hardware') return { ...base, advice: `${gpu.note} The CPU computes.` };
  return { ...base, state: 'less', advice: 'Not in use. Run has the switch.' };
}

/** Features and limits of the adapter in use, and whether it is one. */
function gpuWords(gpu: GpuInfo): string {
  const limits = Object.entries(gpu.limits).map(([name, value]) =>
    /Size$/.test(name) && value >= 1 << 20 ? `${name} ${bytes(value)}` : `${name} ${value}`,
  );
  return [
    `In use, through ${gpu.library === 'browser' ? 'the browser' : gpu.library}.`,
    gpu.driver && `Driver: ${gpu.driver}.`,
    `Features: ${gpu.features.join(', ') || 'none'}.`,
    `Limits: ${limits.join(', ')}.`,
    gpu.software && 'It is software: it computes on the CPU, and is never timed.',
  ]
    .filter(Boolean)
    .join(' ');
}

function isolation(page: PageFacts): Finding {
  if (page.isolated) {
    return {
      id: 'isolation',
      name: 'Isolated page',
      state: 'good',
      value: 'yes',
      advice: page.sharedMemory
        ? 'So its threads may share memory.'
        : 'This browser has no memory that threads share, all the same.',
    };
  }
  const base: Finding = {
    id: 'isolation',
    name: 'Isolated page',
    state: 'less',
    value: 'no',
    advice: '',
  };
  if (!page.secure) {
    return {
      ...base,
      advice:
        'Open the page by https, or from this machine as http://127.0.0.1: ' +
        'other addresses are not trusted with shared memory.',
    };
  }
  if (page.worker === 'controls' || page.worker === 'registered') {
    return {
      ...base,
      action: 'reload',
      advice:
        'The page can add by itself what its server leaves out. It takes one reload.',
    };
  }
  return {
    ...base,
    advice:
      'The server does not send the headers Cross-Origin-Opener-Policy: ' +
      'same-origin and Cross-Origin-Embedder-Policy: require-corp. "tinygpt serve" sends them.',
  };
}

function storage(page: PageFacts): Finding[] {
  const findings: Finding[] = [];
  findings.push(
    page.opfs
      ? {
          id: 'opfs',
          name: 'Saving the run',
          state: 'good',
          value: 'in this browser',
          advice:
            'A refresh, a crash or a closed tab costs a second of training, or what a large model ' +
            'learns while it is saved.',
        }
      : {
          id: 'opfs',
          name: 'Saving the run',
          state: 'missing',
          value: 'no place',
          advice:
            'The browser keeps no files for pages here; a private window often is the reason. ' +
            'Download the run in Files before you leave.',
        },
  );
  if (page.quotaBytes !== null) {
    const free = page.quotaBytes - (page.usedBytes ?? 0);
    findings.push({
      id: 'quota',
      name: 'Room for it',
      state: free > 1e9 ? 'good' : 'less',
      value: `${bytes(free)} free`,
      advice:
        free > 1e9
          ? `${bytes(page.usedBytes ?? 0)} are used.`
          : 'Large models may not fit. Free some space, or download the run now and then.',
    });
  } else if (page.usedBytes !== null) {
    findings.push({
      id: 'quota',
      name: 'Room for it',
      state: 'plain',
      value: 'not told',
      advice: `${bytes(page.usedBytes)} are used. This browser does not tell how much it grants.`,
    });
  }
  if (page.opfs) {
    findings.push(
      page.persisted
        ? {
            id: 'persisted',
            name: 'Kept for good',
            state: 'good',
            value: 'yes',
            advice: 'The browser does not clear it by itself.',
          }
        : {
            id: 'persisted',
            name: 'Kept for good',
            state: 'less',
            value: 'not promised',
            action: 'persist',
            advice:
              'When the disk is full the browser may clear it. Ask it not to' +
              (page.installable ? '; installing helps.' : '.'),
          },
    );
  }
  findings.push(
    page.locks
      ? {
          id: 'locks',
          name: 'Several tabs',
          state: 'good',
          value: 'guarded',
          advice: 'Two tabs cannot write the same run.',
        }
      : {
          id: 'locks',
          name: 'Several tabs',
          state: 'less',
          value: 'not guarded',
          advice: "Open the page in one tab only: two would overwrite each other's runs.",
        },
  );
  return findings;
}

function offline(page: PageFacts): Finding[] {
  const words: Record<PageFacts['worker'], Finding> = {
    controls: {
      id: 'offline',
      name: 'Without a network',
      state: 'good',
      value: 'works',
      advice: page.installed
        ? 'The page is installed.'
        : page.installable
          ? "It can be installed from the browser's menu."
          : 'The page is stored. This browser installs no pages; a bookmark finds it again.',
    },
    registered: {
      id: 'offline',
      name: 'Without a network',
      state: 'less',
      value: 'after a reload',
      action: 'reload',
      advice: 'The page has been stored; it takes over with the next reload.',
    },
    none: {
      id: 'offline',
      name: 'Without a network',
      state: 'less',
      value: 'needs its server',
      advice: 'The page has not been stored for use without its server.',
    },
    unsupported: {
      id: 'offline',
      name: 'Without a network',
      state: 'less',
      value: 'needs its server',
      advice: page.secure
        ? 'This browser, or this private window, has no service workers.'
        : 'Service workers need https or 127.0.0.1.',
    },
  };
  const online: Finding = page.online
    ? {
        id: 'online',
        name: 'Network',
        state: 'plain',
        value: 'there',
        advice: 'Nothing is sent anywhere.',
      }
    : {
        id: 'online',
        name: 'Network',
        state: 'plain',
        value: 'none',
        advice: 'Training needs none.',
      };
  return [words[page.worker], online];
}

/** `info` null: the engine is not there, so only the page's own findings are known. */
export function findings(info: EngineInfo | null, page: PageFacts): FindingGroup[] {
  return [
    ...(info
      ? [{ title: 'Computing', findings: [...computing(info, page), isolation(page)] }]
      : [{ title: 'Computing', findings: [isolation(page), gpuFinding(null, page)] }]),
    { title: 'Keeping', findings: [...storage(page), ...offline(page)] },
  ];
}
