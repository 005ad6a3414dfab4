// SPDX-License-Identifier: Apache-2.0
/**
 * facts.ts - what the browser tells about itself. Every question may be refused or unknown to an
 * older browser; then the answer is null, never an exception.
 */
import { toldQuota } from '../quota';
import { findAdapter, type AdapterVerdict } from '../bench/adapter';

export interface PageFacts {
  secure: boolean;
  isolated: boolean;
  /** Logical processors, null where the browser does not say. */
  processors: number | null;
  /** Gigabytes, coarse and at most 8 by the specification. */
  memoryGb: number | null;
  sharedMemory: boolean;
  opfs: boolean;
  persisted: boolean | null;
  usedBytes: number | null;
  quotaBytes: number | null;
  locks: boolean;
  worker: 'controls' | 'registered' | 'none' | 'unsupported';
  installed: boolean;
  /** Whether the browser installs pages as apps: Chromium's and Apple's do, Firefox and
   *  WebKit on Linux, which names Apple, too, do not. */
  installable: boolean;
  online: boolean;
  gpu: AdapterVerdict;
  notifications: 'granted' | 'denied' | 'default' | 'unsupported';
}

async function ask<T>(question: () => Promise<T> | T): Promise<T | null> {
  try {
    return await question();
  } catch {
    return null;
  }
}

async function opfsWorks(): Promise<boolean> {
  const root = await ask(() => navigator.storage.getDirectory());
  return root !== null && root !== undefined;
}

async function workerState(): Promise<PageFacts['worker']> {
  if (!('serviceWorker' in navigator)) return 'unsupported';
  if (navigator.serviceWorker.controller) return 'controls';
  const registration = await ask(() => navigator.serviceWorker.getRegistration());
  return registration ? 'registered' : 'none';
}

export async function pageFacts(): Promise<PageFacts> {
  const [opfs, persisted, estimate, worker, gpu] = await Promise.all([
    opfsWorks(),
    ask(() => navigator.storage.persisted()),
    ask(() => navigator.storage.estimate()),
    workerState(),
    findAdapter(),
  ]);
  const { deviceMemory } = navigator as Navigator & { deviceMemory?: number };
  return {
    secure: isSecureContext,
    isolated: crossOriginIsolated,
    processors: navigator.hardwareConcurrency || null,
    memoryGb: deviceMemory ?? null,
    sharedMemory: typeof SharedArrayBuffer !== 'undefined',
    opfs,
    persisted,
    usedBytes: estimate?.usage ?? null,
    quotaBytes: estimate ? toldQuota(estimate) : null,
    locks: 'locks' in navigator,
    worker,
    installed: matchMedia('(display-mode: standalone)').matches,
    installable:
      'onbeforeinstallprompt' in window ||
      (/^Apple/.test(navigator.vendor) && !navigator.userAgent.includes('Linux')),
    online: navigator.onLine,
    gpu,
    notifications: 'Notification' in window ? Notification.permission : 'unsupported',
  };
}
