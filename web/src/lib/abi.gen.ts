// SPDX-License-Identifier: Apache-2.0
/**
 * abi.gen.ts - the C interface as data: made by tools/gen_abi.py from include/tinygpt.h,
 * src/base/os/os_wasm.h, gpu_js.h and src/api/callbacks_wasm.c. Do not edit: run `make gen`.
 *
 * Offsets and sizes come in pairs, for 32-bit and 64-bit pointers. Letters of calls,
 * result first: p pointer or size, i u int and unsigned, l L the same in 64 bits,
 * b bool, f float, d double, v nothing. abi.ts makes calls and values of these tables.
 */

/** An address in the module's memory, or a size: a number in both pointer widths. */
export type Ptr = number;

export const VERSION = '0.2.0';

/** tg_status; tg_status_text has a sentence for each. */
export const STATUS = {
  OK: 0,
  PENDING: 1,
  STOPPED: 2,
  E_ARG: -1,
  E_MEMORY: -2,
  E_IO: -3,
  E_FORMAT: -4,
  E_CHECKSUM: -5,
  E_RANGE: -6,
  E_FULL: -7,
  E_SHAPE: -8,
  E_UNSUPPORTED: -9,
  E_DEVICE: -10,
  E_NUMBER: -11,
  E_DATA: -12,
  E_INTERNAL: -13,
} as const;

export const tg_experts_weigh = {
  TG_EXPERTS_SUM_TO_1: 1,
  TG_EXPERTS_SHARES: 2,
} as const;

export const tg_biases = {
  TG_BIAS_QKV: 1,
  TG_BIAS_OUT: 2,
  TG_BIAS_MLP: 4,
} as const;

export const tg_layer_kind = {
  TG_LAYER_ATTENTION: 97,
  TG_LAYER_CONV: 99,
  TG_LAYER_MAMBA2: 109,
  TG_LAYER_DELTA: 100,
  TG_LAYER_MLP: 102,
} as const;

export const tg_ability = {
  TG_CAN_WRITE: 0,
  TG_CAN_EMBED: 1,
  TG_CAN_CHAT: 2,
  TG_CAN_TRAIN: 3,
  TG_CAN_SAVE: 4,
  TG_CAN_RANK: 5,
} as const;

export const tg_file_kind = {
  TG_FILE_V3: 0,
  TG_FILE_V2_F32: 1,
  TG_FILE_V2_F16: 2,
  TG_FILE_V2_INT4: 3,
  TG_FILE_V1_F32: 4,
  TG_FILE_SAFETENSORS: 5,
  TG_FILE_FOLDER: 6,
  TG_FILE_GGUF: 7,
} as const;

export const tg_weight_type = {
  TG_WEIGHT_F32: 0,
  TG_WEIGHT_F16: 1,
  TG_WEIGHT_BF16: 2,
  TG_WEIGHT_Q8_0: 3,
  TG_WEIGHT_Q4_0: 4,
  TG_WEIGHT_Q4_K: 5,
  TG_WEIGHT_Q5_0: 6,
  TG_WEIGHT_IQ4_NL: 7,
  TG_WEIGHT_Q5_K: 8,
  TG_WEIGHT_Q6_K: 9,
  TG_WEIGHT_Q4_K_M: 10,
  TG_WEIGHT_Q5_K_M: 11,
} as const;

export const tg_encode_flag = {
  TG_ENCODE_ENDS: 1,
  TG_ENCODE_SPECIAL: 2,
} as const;

export const tg_role = {
  TG_SYSTEM: 0,
  TG_USER: 1,
  TG_ASSISTANT: 2,
} as const;

export const tg_chat_flag = {
  TG_NO_THINKING: 1,
  TG_CONTINUE: 2,
} as const;

export const tg_chat_limit = {
  TG_ENDS_MAX: 32,
} as const;

export const tg_no_target = {
  TG_NO_TARGET: -1,
} as const;

export const tg_schedule = {
  TG_CONSTANT: 0,
  TG_COSINE: 1,
  TG_WSD: 2,
} as const;

export const tg_optimizer = {
  TG_ADAMW: 0,
  TG_MUON: 1,
} as const;

export const tg_pooling = {
  TG_POOLING_MODEL: 0,
  TG_POOLING_MEAN: 1,
  TG_POOLING_CLS: 2,
  TG_POOLING_LAST: 3,
  TG_POOLING_MAX: 4,
  TG_POOLING_MEAN_SQRT_LEN: 5,
  TG_POOLING_WEIGHTED_MEAN: 6,
  TG_POOLING_RANK: 7,
} as const;

export const tg_kv_type = {
  TG_KV_F32: 0,
  TG_KV_F16: 1,
  TG_KV_INT8: 2,
} as const;

export const tg_answer_part = {
  TG_ANSWER_TEXT: 0,
  TG_ANSWER_THINKING: 1,
  TG_ANSWER_TOOL_CALL: 2,
} as const;

export const tg_full = {
  TG_FULL_SLIDE: 0,
  TG_FULL_STOP: 1,
} as const;

export const tg_end = {
  TG_END_TOKEN: 0,
  TG_END_STOP: 1,
  TG_END_CANCELLED: 2,
  TG_END_LIMIT: 3,
  TG_END_FULL: 4,
} as const;

export const tg_draft_limit = {
  TG_DRAFT_MAX: 15,
} as const;

export const tg_batch_limit = {
  TG_BATCH_MAX: 64,
} as const;

export const tg_model_part = {
  TG_PART_HEAD: 0,
  TG_PART_ATTENTION: 1,
  TG_PART_MLP: 2,
  TG_PART_BLOCK: 3,
} as const;

export const tg_edit_kind = {
  TG_EDIT_ZERO: 0,
  TG_EDIT_DONOR: 1,
} as const;

/** Structs: size, then every member's kind and offset; `chars` with its length. */
export const STRUCTS = {
  tg_context_options: {
    size: [36, 72],
    members: {
      structBytes: ['ptr', 0, 0],
      threads: ['u32', 4, 8],
      isa: ['text', 8, 16],
      device: ['text', 12, 24],
      levers: ['text', 16, 32],
      alloc: ['ptr', 20, 40],
      allocUser: ['ptr', 24, 48],
      log: ['ptr', 28, 56],
      logUser: ['ptr', 32, 64],
    },
  },
  tg_model_config: {
    size: [668, 672],
    members: {
      layers: ['i32', 0, 0],
      width: ['i32', 4, 4],
      heads: ['i32', 8, 8],
      ctx: ['i32', 12, 12],
      vocab: ['i32', 16, 16],
      mlp: ['i32', 20, 20],
      family: ['text', 24, 24],
      kvHeads: ['i32', 28, 32],
      headSize: ['i32', 32, 36],
      window: ['i32', 36, 40],
      windowEvery: ['i32', 40, 44],
      tied: ['i32', 44, 48],
      geluErf: ['i32', 48, 52],
      eps: ['f32', 52, 56],
      scoreScale: ['f32', 56, 60],
      embedScale: ['f32', 60, 64],
      ropeBase0: ['f32', 64, 68],
      ropeBase1: ['f32', 68, 72],
      ropeFactor: ['f32', 72, 76],
      biases: ['i32', 76, 80],
      ropeSize: ['i32', 80, 84],
      ropeOriginal: ['i32', 84, 88],
      ropeScale: ['f32', 88, 92],
      scoreCap: ['f32', 92, 96],
      logitCap: ['f32', 96, 100],
      convTaps: ['i32', 100, 104],
      layerKind: ['chars', 104, 108, 512],
      ssmHeads: ['i32', 616, 620],
      ssmHeadSize: ['i32', 620, 624],
      ssmGroups: ['i32', 624, 628],
      ssmState: ['i32', 628, 632],
      residualScale: ['f32', 632, 636],
      logitScale: ['f32', 636, 640],
      experts: ['i32', 640, 644],
      expertsUsed: ['i32', 644, 648],
      expertsWeigh: ['i32', 648, 652],
      kvShared: ['i32', 652, 656],
      mlpShared: ['i32', 656, 660],
      windowHeadSize: ['i32', 660, 664],
      layerInputs: ['i32', 664, 668],
    },
  },
  tg_preset: {
    size: [684, 696],
    members: {
      name: ['text', 0, 0],
      config: ['tg_model_config', 4, 8],
      batch: ['i32', 672, 680],
      steps: ['i32', 676, 684],
      doc: ['text', 680, 688],
    },
  },
  tg_model_info: {
    size: [728, 744],
    members: {
      family: ['text', 0, 0],
      config: ['tg_model_config', 4, 8],
      params: ['u64', 672, 680],
      weightBytes: ['u64', 680, 688],
      format: ['text', 688, 696],
      dtype: ['text', 692, 704],
      step: ['i64', 696, 712],
      loss: ['f64', 704, 720],
      valLoss: ['f64', 712, 728],
      hasMoments: ['bool', 720, 736],
      usedPrev: ['bool', 721, 737],
    },
  },
  tg_convert_report: {
    size: [1136, 1152],
    members: {
      inBytes: ['u64', 0, 0],
      outBytes: ['u64', 8, 8],
      nTensors: ['ptr', 16, 16],
      nFiner: ['ptr', 20, 24],
      finer: ['chars', 24, 32, 1024],
      nPositions: ['ptr', 1048, 1056],
      maxError: ['f64', 1056, 1064],
      tanhError: ['f64', 1064, 1072],
      meanKl: ['f64', 1072, 1080],
      maxKl: ['f64', 1080, 1088],
      sameBest: ['f64', 1088, 1096],
      nTexts: ['ptr', 1096, 1104],
      nTextsSame: ['ptr', 1100, 1112],
      nVectors: ['ptr', 1104, 1120],
      minCosine: ['f64', 1112, 1128],
      nWeighed: ['ptr', 1120, 1136],
      nCalibration: ['u64', 1128, 1144],
    },
  },
  tg_calibration: {
    size: [8, 16],
    members: {
      text: ['ptr', 0, 0],
      imatrix: ['text', 4, 8],
    },
  },
  tg_turn: {
    size: [12, 24],
    members: {
      role: ['i32', 0, 0],
      text: ['text', 4, 8],
      nBytes: ['ptr', 8, 16],
    },
  },
  tg_mix_part: {
    size: [16, 16],
    members: {
      end: ['u64', 0, 0],
      weight: ['f64', 8, 8],
    },
  },
  tg_chats_info: {
    size: [40, 40],
    members: {
      conversations: ['u64', 0, 0],
      rows: ['u64', 8, 8],
      tokens: ['u64', 16, 16],
      targets: ['u64', 24, 24],
      longest: ['u64', 32, 32],
    },
  },
  tg_train_options: {
    size: [192, 192],
    members: {
      structBytes: ['ptr', 0, 0],
      steps: ['i64', 8, 8],
      batch: ['i32', 16, 16],
      accum: ['i32', 20, 20],
      lr: ['f64', 24, 24],
      minLrRatio: ['f64', 32, 32],
      schedule: ['i32', 40, 40],
      warmup: ['i64', 48, 48],
      decayFraction: ['f64', 56, 56],
      weightDecay: ['f64', 64, 64],
      beta1: ['f64', 72, 72],
      beta2: ['f64', 80, 80],
      eps: ['f64', 88, 88],
      clip: ['f64', 96, 96],
      seed: ['u64', 104, 104],
      valFraction: ['f64', 112, 112],
      evalEvery: ['i64', 120, 120],
      evalWindows: ['i32', 128, 128],
      patience: ['i32', 132, 132],
      skipBadSteps: ['bool', 136, 136],
      keepBest: ['bool', 137, 137],
      holdLrAfter: ['i64', 144, 144],
      rowTokens: ['i32', 152, 152],
      dropout: ['f64', 160, 160],
      optimizer: ['i32', 168, 168],
      momentum: ['f64', 176, 176],
      ema: ['f64', 184, 184],
    },
  },
  tg_step_report: {
    size: [232, 232],
    members: {
      step: ['i64', 0, 0],
      loss: ['f64', 8, 8],
      valLoss: ['f64', 16, 16],
      valIsBest: ['bool', 24, 24],
      lr: ['f64', 32, 32],
      gradNorm: ['f64', 40, 40],
      ms: ['f64', 48, 48],
      tokPerS: ['f64', 56, 56],
      shareOfPeak: ['f64', 64, 64],
      lossHash: ['u64', 72, 72],
      skipped: ['bool', 80, 80],
      earlyStop: ['bool', 81, 81],
      badTensor: ['chars', 82, 82, 128],
      bitsPerByte: ['f64', 216, 216],
      valBitsPerByte: ['f64', 224, 224],
    },
  },
  tg_preferences: {
    size: [32, 32],
    members: {
      accuracy: ['f64', 0, 0],
      margin: ['f64', 8, 8],
      valAccuracy: ['f64', 16, 16],
      valMargin: ['f64', 24, 24],
    },
  },
  tg_callbacks: {
    size: [12, 24],
    members: {
      progress: ['ptr', 0, 0],
      cancel: ['ptr', 4, 8],
      user: ['ptr', 8, 16],
    },
  },
  tg_sample_options: {
    size: [88, 88],
    members: {
      structBytes: ['ptr', 0, 0],
      temperature: ['f64', 8, 8],
      topK: ['i32', 16, 16],
      topP: ['f64', 24, 24],
      minP: ['f64', 32, 32],
      repeatPenalty: ['f64', 40, 40],
      repeatLast: ['i32', 48, 48],
      seed: ['u64', 56, 56],
      typicalP: ['f64', 64, 64],
      frequencyPenalty: ['f64', 72, 72],
      presencePenalty: ['f64', 80, 80],
    },
  },
  tg_embed_options: {
    size: [20, 32],
    members: {
      structBytes: ['ptr', 0, 0],
      pooling: ['i32', 4, 8],
      raw: ['bool', 8, 12],
      cut: ['bool', 9, 13],
      prompt: ['text', 12, 16],
      promptName: ['text', 16, 24],
    },
  },
  tg_embed_text: {
    size: [8, 16],
    members: {
      text: ['text', 0, 0],
      nBytes: ['ptr', 4, 8],
    },
  },
  tg_load_times: {
    size: [40, 40],
    members: {
      openMs: ['f64', 0, 0],
      tokMs: ['f64', 8, 8],
      packMs: ['f64', 16, 16],
      bytes: ['u64', 24, 24],
      mapped: ['bool', 32, 32],
    },
  },
  tg_lint: {
    size: [264, 272],
    members: {
      level: ['i32', 0, 0],
      code: ['text', 4, 8],
      text: ['chars', 8, 16, 256],
    },
  },
  tg_forecast: {
    size: [1184, 1184],
    members: {
      params: ['u64', 0, 0],
      memoryBytes: ['u64', 8, 8],
      weightsBytes: ['u64', 16, 16],
      momentsBytes: ['u64', 24, 24],
      gradientsBytes: ['u64', 32, 32],
      workspaceBytes: ['u64', 40, 40],
      bestBytes: ['u64', 48, 48],
      memoryAvailableBytes: ['u64', 56, 56],
      saveBytes: ['u64', 64, 64],
      diskBytes: ['u64', 72, 72],
      flopPerStep: ['f64', 80, 80],
      peakGflops: ['f64', 88, 88],
      msPerStep: ['f64', 96, 96],
      seconds: ['f64', 104, 104],
      trainBytes: ['u64', 112, 112],
      valBytes: ['u64', 120, 120],
      bytesPerParam: ['f64', 128, 128],
      epochs: ['f64', 136, 136],
      advice: ['chars', 144, 144, 1024],
      trainTokens: ['u64', 1168, 1168],
      valTokens: ['u64', 1176, 1176],
    },
  },
  tg_history_point: {
    size: [24, 24],
    members: {
      step: ['i64', 0, 0],
      loss: ['f64', 8, 8],
      valLoss: ['f64', 16, 16],
    },
  },
  tg_logit_bias: {
    size: [16, 16],
    members: {
      id: ['i32', 0, 0],
      bias: ['f64', 8, 8],
    },
  },
  tg_likely: {
    size: [16, 16],
    members: {
      id: ['i32', 0, 0],
      logprob: ['f64', 8, 8],
    },
  },
  tg_token: {
    size: [40, 56],
    members: {
      id: ['i32', 0, 0],
      text: ['text', 4, 8],
      nBytes: ['ptr', 8, 16],
      logprob: ['f64', 16, 24],
      best: ['ptr', 24, 32],
      nBest: ['ptr', 28, 40],
      part: ['i32', 32, 48],
    },
  },
  tg_generate_stats: {
    size: [64, 96],
    members: {
      promptTokens: ['ptr', 0, 0],
      promptDropped: ['ptr', 4, 8],
      newTokens: ['ptr', 8, 16],
      slides: ['ptr', 12, 24],
      promptMs: ['f64', 16, 32],
      firstTokenMs: ['f64', 24, 40],
      tokPerS: ['f64', 32, 48],
      end: ['i32', 40, 56],
      promptKept: ['ptr', 44, 64],
      slidTokens: ['ptr', 48, 72],
      drafted: ['ptr', 52, 80],
      accepted: ['ptr', 56, 88],
    },
  },
  tg_generation: {
    size: [96, 184],
    members: {
      structBytes: ['ptr', 0, 0],
      prompt: ['text', 4, 8],
      promptBytes: ['ptr', 8, 16],
      ids: ['ptr', 12, 24],
      nIds: ['ptr', 16, 32],
      sample: ['ptr', 20, 40],
      firstDraw: ['u64', 24, 48],
      nTokens: ['ptr', 32, 56],
      ends: ['ptr', 36, 64],
      nEnds: ['ptr', 40, 72],
      full: ['i32', 44, 80],
      makeRoom: ['ptr', 48, 88],
      logprobs: ['bool', 52, 96],
      nBest: ['ptr', 56, 104],
      token: ['ptr', 60, 112],
      write: ['ptr', 64, 120],
      cancel: ['ptr', 68, 128],
      user: ['ptr', 72, 136],
      newIds: ['ptr', 76, 144],
      draft: ['ptr', 80, 152],
      draftSession: ['ptr', 84, 160],
      parts: ['bool', 88, 168],
      chatTemplate: ['text', 92, 176],
    },
  },
  tg_batch_entry: {
    size: [16, 32],
    members: {
      session: ['ptr', 0, 0],
      tokens: ['ptr', 4, 8],
      n: ['ptr', 8, 16],
      status: ['i32', 12, 24],
    },
  },
  tg_edit: {
    size: [20, 20],
    members: {
      layer: ['i32', 0, 0],
      head: ['i32', 4, 4],
      position: ['i32', 8, 8],
      part: ['i32', 12, 12],
      kind: ['i32', 16, 16],
    },
  },
  tg_isa_info: {
    size: [12, 24],
    members: {
      name: ['text', 0, 0],
      needs: ['text', 4, 8],
      built: ['bool', 8, 16],
      usable: ['bool', 9, 17],
      fused: ['bool', 10, 18],
    },
  },
  tg_lever_info: {
    size: [16, 32],
    members: {
      name: ['text', 0, 0],
      doc: ['text', 4, 8],
      defaultOn: ['bool', 8, 16],
      keepsBits: ['bool', 9, 17],
      gpuOnly: ['bool', 10, 18],
      cpuOnly: ['bool', 11, 19],
      state: ['text', 12, 24],
    },
  },
  tg_machine_info: {
    size: [168, 168],
    members: {
      cpus: ['u32', 0, 0],
      affinityCpus: ['u32', 4, 4],
      cgroupCpus: ['f64', 8, 8],
      memoryBytes: ['u64', 16, 16],
      memoryAvailableBytes: ['u64', 24, 24],
      processPeakBytes: ['u64', 32, 32],
      cpuName: ['chars', 40, 40, 128],
    },
  },
  tg_gpu_facts: {
    size: [56, 72],
    members: {
      adapter: ['text', 0, 0],
      driver: ['text', 4, 8],
      api: ['text', 8, 16],
      library: ['text', 12, 24],
      matrices: ['text', 16, 32],
      software: ['bool', 20, 40],
      f16: ['bool', 21, 41],
      subgroups: ['bool', 22, 42],
      timestamps: ['bool', 23, 43],
      hasMatrices: ['bool', 24, 44],
      maxBufferBytes: ['u64', 32, 48],
      maxBindingBytes: ['u64', 40, 56],
      maxGroupBytes: ['u32', 48, 64],
      maxGroupThreads: ['u32', 52, 68],
    },
  },
  tg_check: {
    size: [32, 40],
    members: {
      op: ['text', 0, 0],
      what: ['text', 4, 8],
      error: ['f64', 8, 16],
      tolerance: ['f64', 16, 24],
      passed: ['bool', 24, 32],
    },
  },
  tg_profile_row: {
    size: [48, 56],
    members: {
      op: ['text', 0, 0],
      variant: ['text', 4, 8],
      count: ['ptr', 8, 16],
      ms: ['f64', 16, 24],
      gflop: ['f64', 24, 32],
      gbytes: ['f64', 32, 40],
      step: ['text', 40, 48],
    },
  },
} as const;

/** Functions of the module. A struct returned is written to `result`. */
export const EXPORTS = {
  tg_status_text: 'p:i',
  tg_version: 'p:',
  tg_context_options_init: 'v:pp',
  tg_context_new: 'i:pp',
  tg_context_free: 'v:p',
  tg_context_error: 'p:p',
  tg_context_banner: 'p:p',
  tg_context_threads: 'u:p',
  tg_context_isa: 'p:p',
  tg_family_at: 'p:p',
  tg_preset_count: 'p:',
  tg_preset_at: 'p:p',
  tg_preset_find: 'p:p',
  tg_default_heads: 'i:i',
  tg_param_count: 'L:p',
  tg_model_new: 'i:ppLp',
  tg_model_open: 'i:ppp',
  tg_model_open_floats: 'i:ppp',
  tg_model_free: 'v:p',
  tg_model_get_info: 'i:pp',
  tg_model_can: 'b:pi',
  tg_model_save: 'i:ppi',
  tg_file_info: 'i:ppbpp',
  tg_file_check: 'i:pp',
  tg_model_tokenizer: 'p:p',
  tg_tokenizer_open: 'i:ppp',
  tg_tokenizer_free: 'v:p',
  tg_model_new_vocabulary: 'i:pppLp',
  tg_tokenizer_encode: 'i:ppppuppp',
  tg_tokenizer_count: 'p:p',
  tg_tokenizer_bytes: 'p:pip',
  tg_tokenizer_piece: 'p:pip',
  tg_tokenizer_decode: 'i:ppppppp',
  tg_chat_template_at: 'p:p',
  tg_tokenizer_template: 'p:p',
  tg_tokenizer_chat: 'i:pppppuppp',
  tg_tokenizer_ends: 'i:ppppp',
  tg_text_open: 'i:ppp',
  tg_text_from_memory: 'i:pppp',
  tg_text_join: 'i:pp',
  tg_text_hold_back: 'i:pL',
  tg_text_free: 'v:p',
  tg_text_bytes: 'L:p',
  tg_train_options_init: 'v:pp',
  tg_trainer_new: 'i:ppppp',
  tg_trainer_open: 'i:ppplp',
  tg_trainer_free: 'v:p',
  tg_trainer_model: 'p:p',
  tg_trainer_run: 'i:ppp',
  tg_trainer_save: 'i:pp',
  tg_trainer_eval: 'i:pp',
  tg_sample_options_init: 'v:pp',
  tg_generate: 'i:pppppppp',
  tg_session_new: 'i:ppip',
  tg_session_free: 'v:p',
  tg_chat: 'i:ppppppp',
  tg_embed_options_init: 'v:pp',
  tg_embedder_new: 'i:pppp',
  tg_embedder_free: 'v:p',
  tg_embedder_width: 'p:p',
  tg_embedder_run: 'i:pppp',
  tg_embedder_query: 'i:pp',
  tg_context_pack_cache: 'i:pp',
  tg_context_date: 'i:pp',
  tg_model_tensor: 'i:pppp',
  tg_model_tensor_at: 'p:ppp',
  tg_model_sampling: 'i:pppp',
  tg_file_config: 'i:ppp',
  tg_transformers_config: 'i:pppp',
  tg_text_set_tokenizer: 'i:pp',
  tg_tokenizer_train: 'i:ppppp',
  tg_tokenizer_kind_at: 'p:p',
  tg_text_sha256: 'i:pp',
  tg_text_lint: 'i:pidpp',
  tg_stories: 'i:LLpp',
  tg_trainer_forecast: 'i:pp',
  tg_forecast_run: 'i:ppppp',
  tg_trainer_options: 'i:pp',
  tg_trainer_step: 'i:pp',
  tg_trainer_poll: 'i:pdp',
  tg_trainer_steady: 'b:p',
  tg_trainer_set_steps: 'i:pl',
  tg_trainer_hold_lr: 'i:p',
  tg_trainer_lr: 'd:pl',
  tg_trainer_set_rate: 'i:ppp',
  tg_trainer_set_rates: 'i:pppp',
  tg_trainer_rates: 'p:ppp',
  tg_trainer_set_validation: 'i:pli',
  tg_model_eval: 'i:pppdip',
  tg_trainer_steps_done: 'l:p',
  tg_trainer_save_best: 'i:pp',
  tg_trainer_history: 'p:pp',
  tg_tokenizer_chat_json: 'i:pppppuppp',
  tg_tokenizer_render: 'i:pppppupp',
  tg_session_new_kv: 'i:ppiip',
  tg_session_eval: 'i:pppp',
  tg_session_logits: 'p:p',
  tg_session_sample: 'i:ppLp',
  tg_session_set_bias: 'i:ppp',
  tg_session_set_banned: 'i:ppp',
  tg_session_set_mask: 'i:ppp',
  tg_session_set_stops: 'i:ppp',
  tg_session_best: 'i:ppppp',
  tg_session_rewind: 'i:pp',
  tg_session_reuse: 'i:pppp',
  tg_session_tokens: 'p:p',
  tg_session_held: 'p:p',
  tg_session_capacity: 'p:p',
  tg_session_save: 'i:pppp',
  tg_session_load: 'i:pppp',
  tg_session_slide: 'i:p',
  tg_generation_init: 'v:pp',
  tg_session_continue: 'i:ppp',
  tg_batch_new: 'i:pppiip',
  tg_batch_free: 'v:p',
  tg_batch_session: 'p:pp',
  tg_batch_eval: 'i:ppp',
  tg_batch_copy: 'i:ppp',
  tg_batch_continue: 'i:ppppp',
  tg_probe_new: 'i:pppp',
  tg_probe_free: 'v:p',
  tg_probe_run: 'i:ppppp',
  tg_probe_attention: 'p:pii',
  tg_probe_lens: 'p:pi',
  tg_job_poll: 'i:pd',
  tg_job_free: 'v:p',
  tg_model_new_job: 'i:ppLpp',
  tg_model_new_vocabulary_job: 'i:pppLpp',
  tg_model_open_job: 'i:pppp',
  tg_model_open_floats_job: 'i:pppp',
  tg_model_save_job: 'i:ppip',
  tg_stories_job: 'i:pLLppp',
  tg_text_lint_job: 'i:pidppp',
  tg_tokenizer_train_job: 'i:pppppp',
  tg_text_sha256_job: 'i:ppp',
  tg_forecast_run_job: 'i:pppppp',
  tg_trainer_new_job: 'i:pppppp',
  tg_trainer_open_job: 'i:ppplpp',
  tg_trainer_step_job: 'i:ppp',
  tg_trainer_eval_job: 'i:ppp',
  tg_trainer_save_job: 'i:ppp',
  tg_trainer_save_best_job: 'i:ppp',
  tg_session_eval_job: 'i:pppp',
  tg_session_slide_job: 'i:pp',
  tg_session_continue_job: 'i:pppp',
  tg_batch_eval_job: 'i:pppp',
  tg_batch_continue_job: 'i:pppppp',
  tg_probe_run_job: 'i:pppppp',
  tg_model_eval_job: 'i:pppdipp',
  tg_embedder_run_job: 'i:ppppp',
  tg_file_check_job: 'i:ppp',
  tg_model_convert_job: 'i:pppip',
  tg_isa_count: 'p:',
  tg_isa_at: 'p:p',
  tg_lever_count: 'p:',
  tg_lever_at: 'p:p',
  tg_context_lever: 'b:pp',
  tg_machine: 'i:pp',
  tg_measure_peak: 'i:pp',
  tg_measure_peak_job: 'i:ppp',
  tg_measure_read: 'i:ppp',
  tg_context_gpu: 'i:pp',
  tg_context_rest: 'i:p',
  tg_context_rest_job: 'i:pp',
  tg_measure_gpu: 'i:ppp',
  tg_measure_gpu_job: 'i:pppp',
  tg_bench_matmul: 'i:piiiipp',
  tg_check_kernels: 'i:ppppp',
  tg_check_kernels_job: 'i:pppppp',
  tg_dump: 'i:pppipp',
  tg_model_dump: 'i:ppipp',
  tg_trainer_profile: 'i:piipp',
  tg_session_profile: 'i:ppiipp',
  tg_wasm_machine_set: 'v:du',
  tg_wasm_alloc: 'p:p',
  tg_wasm_free: 'v:pp',
  tg_wasm_file_put: 'i:ppp',
  tg_wasm_file_remove: 'b:p',
  tg_wasm_stories_set: 'v:p',
  tg_wasm_cases_set: 'i:pp',
  tg_wasm_thread_new: 'p:',
  tg_wasm_thread_main: 'v:p',
  tg_wasm_thread_died: 'v:p',
  tg_wasm_on_text: 'p:',
  tg_wasm_on_token: 'p:',
  tg_wasm_on_room: 'p:',
  tg_wasm_on_mask: 'p:',
  tg_wasm_on_cancel: 'p:',
  tg_wasm_on_log: 'p:',
  tg_wasm_on_lint: 'p:',
  tg_wasm_on_check: 'p:',
  tg_wasm_on_profile: 'p:',
  tg_wasm_on_progress: 'p:',
} as const;

export interface Exports {
  tg_status_text(status: number): Ptr;
  tg_version(): Ptr;
  tg_context_options_init(options: Ptr, structBytes: Ptr): void;
  tg_context_new(options: Ptr, out: Ptr): number;
  tg_context_free(ctx: Ptr): void;
  tg_context_error(ctx: Ptr): Ptr;
  tg_context_banner(ctx: Ptr): Ptr;
  tg_context_threads(ctx: Ptr): number;
  tg_context_isa(ctx: Ptr): Ptr;
  tg_family_at(i: Ptr): Ptr;
  tg_preset_count(): Ptr;
  tg_preset_at(i: Ptr): Ptr;
  tg_preset_find(name: Ptr): Ptr;
  tg_default_heads(width: number): number;
  tg_param_count(config: Ptr): bigint;
  tg_model_new(ctx: Ptr, config: Ptr, seed: number | bigint, out: Ptr): number;
  tg_model_open(ctx: Ptr, path: Ptr, out: Ptr): number;
  tg_model_open_floats(ctx: Ptr, path: Ptr, out: Ptr): number;
  tg_model_free(model: Ptr): void;
  tg_model_get_info(model: Ptr, out: Ptr): number;
  tg_model_can(model: Ptr, what: number): boolean;
  tg_model_save(model: Ptr, path: Ptr, kind: number): number;
  tg_file_info(ctx: Ptr, path: Ptr, json: boolean, write: Ptr, user: Ptr): number;
  tg_file_check(ctx: Ptr, path: Ptr): number;
  tg_model_tokenizer(model: Ptr): Ptr;
  tg_tokenizer_open(ctx: Ptr, path: Ptr, out: Ptr): number;
  tg_tokenizer_free(tokenizer: Ptr): void;
  tg_model_new_vocabulary(
    ctx: Ptr, config: Ptr, tokenizer: Ptr, seed: number | bigint, out: Ptr,
  ): number;
  tg_tokenizer_encode(
    ctx: Ptr, tok: Ptr, text: Ptr, nBytes: Ptr, flags: number, ids: Ptr, cap: Ptr, n: Ptr,
  ): number;
  tg_tokenizer_count(tokenizer: Ptr): Ptr;
  tg_tokenizer_bytes(tokenizer: Ptr, id: number, nBytes: Ptr): Ptr;
  tg_tokenizer_piece(tokenizer: Ptr, id: number, nBytes: Ptr): Ptr;
  tg_tokenizer_decode(
    ctx: Ptr, tok: Ptr, ids: Ptr, n: Ptr, held: Ptr, write: Ptr, user: Ptr,
  ): number;
  tg_chat_template_at(i: Ptr): Ptr;
  tg_tokenizer_template(tokenizer: Ptr): Ptr;
  tg_tokenizer_chat(
    ctx: Ptr, tok: Ptr, name: Ptr, turns: Ptr, nTurns: Ptr, flags: number, ids: Ptr, cap: Ptr,
    n: Ptr,
  ): number;
  tg_tokenizer_ends(ctx: Ptr, tok: Ptr, name: Ptr, ends: Ptr, n: Ptr): number;
  tg_text_open(ctx: Ptr, path: Ptr, out: Ptr): number;
  tg_text_from_memory(ctx: Ptr, bytes: Ptr, nBytes: Ptr, out: Ptr): number;
  tg_text_join(text: Ptr, more: Ptr): number;
  tg_text_hold_back(text: Ptr, trainBytes: number | bigint): number;
  tg_text_free(text: Ptr): void;
  tg_text_bytes(text: Ptr): bigint;
  tg_train_options_init(options: Ptr, structBytes: Ptr): void;
  tg_trainer_new(ctx: Ptr, model: Ptr, text: Ptr, options: Ptr, out: Ptr): number;
  tg_trainer_open(ctx: Ptr, path: Ptr, text: Ptr, steps: number | bigint, out: Ptr): number;
  tg_trainer_free(trainer: Ptr): void;
  tg_trainer_model(trainer: Ptr): Ptr;
  tg_trainer_run(trainer: Ptr, callbacks: Ptr, savePath: Ptr): number;
  tg_trainer_save(trainer: Ptr, path: Ptr): number;
  tg_trainer_eval(trainer: Ptr, loss: Ptr): number;
  tg_sample_options_init(options: Ptr, structBytes: Ptr): void;
  tg_generate(
    ctx: Ptr, model: Ptr, prompt: Ptr, promptBytes: Ptr, options: Ptr, nTokens: Ptr, write: Ptr,
    user: Ptr,
  ): number;
  tg_session_new(ctx: Ptr, model: Ptr, ctxTokens: number, out: Ptr): number;
  tg_session_free(session: Ptr): void;
  tg_chat(
    session: Ptr, turns: Ptr, nTurns: Ptr, options: Ptr, nTokens: Ptr, write: Ptr, user: Ptr,
  ): number;
  tg_embed_options_init(options: Ptr, structBytes: Ptr): void;
  tg_embedder_new(ctx: Ptr, model: Ptr, options: Ptr, out: Ptr): number;
  tg_embedder_free(embedder: Ptr): void;
  tg_embedder_width(embedder: Ptr): Ptr;
  tg_embedder_run(embedder: Ptr, texts: Ptr, n: Ptr, out: Ptr): number;
  tg_embedder_query(embedder: Ptr, query: Ptr): number;
  tg_context_pack_cache(ctx: Ptr, folder: Ptr): number;
  tg_context_date(ctx: Ptr, date: Ptr): number;
  tg_model_tensor(model: Ptr, name: Ptr, out: Ptr, nElems: Ptr): number;
  tg_model_tensor_at(model: Ptr, i: Ptr, nElems: Ptr): Ptr;
  tg_model_sampling(model: Ptr, options: Ptr, said: Ptr, saidBytes: Ptr): number;
  tg_file_config(ctx: Ptr, path: Ptr, out: Ptr): number;
  tg_transformers_config(ctx: Ptr, config: Ptr, write: Ptr, user: Ptr): number;
  tg_text_set_tokenizer(text: Ptr, tokenizer: Ptr): number;
  tg_tokenizer_train(text: Ptr, kind: Ptr, nTokens: Ptr, write: Ptr, user: Ptr): number;
  tg_tokenizer_kind_at(i: Ptr): Ptr;
  tg_text_sha256(text: Ptr, digest: Ptr): number;
  tg_text_lint(text: Ptr, ctxTokens: number, valFraction: number, report: Ptr, user: Ptr): number;
  tg_stories(seed: number | bigint, nBytes: number | bigint, write: Ptr, user: Ptr): number;
  tg_trainer_forecast(trainer: Ptr, out: Ptr): number;
  tg_forecast_run(ctx: Ptr, config: Ptr, text: Ptr, options: Ptr, out: Ptr): number;
  tg_trainer_options(trainer: Ptr, out: Ptr): number;
  tg_trainer_step(trainer: Ptr, out: Ptr): number;
  tg_trainer_poll(trainer: Ptr, budgetMs: number, out: Ptr): number;
  tg_trainer_steady(trainer: Ptr): boolean;
  tg_trainer_set_steps(trainer: Ptr, steps: number | bigint): number;
  tg_trainer_hold_lr(trainer: Ptr): number;
  tg_trainer_lr(trainer: Ptr, step: number | bigint): number;
  tg_trainer_set_rate(trainer: Ptr, rate: Ptr, user: Ptr): number;
  tg_trainer_set_rates(trainer: Ptr, steps: Ptr, rates: Ptr, n: Ptr): number;
  tg_trainer_rates(trainer: Ptr, steps: Ptr, rates: Ptr): Ptr;
  tg_trainer_set_validation(trainer: Ptr, evalEvery: number | bigint, patience: number): number;
  tg_model_eval(
    ctx: Ptr, model: Ptr, text: Ptr, valFraction: number, evalWindows: number, loss: Ptr,
  ): number;
  tg_trainer_steps_done(trainer: Ptr): bigint;
  tg_trainer_save_best(trainer: Ptr, path: Ptr): number;
  tg_trainer_history(trainer: Ptr, n: Ptr): Ptr;
  tg_tokenizer_chat_json(
    ctx: Ptr, tok: Ptr, name: Ptr, json: Ptr, nBytes: Ptr, flags: number, ids: Ptr, cap: Ptr,
    n: Ptr,
  ): number;
  tg_tokenizer_render(
    ctx: Ptr, tok: Ptr, name: Ptr, json: Ptr, nBytes: Ptr, flags: number, write: Ptr, user: Ptr,
  ): number;
  tg_session_new_kv(ctx: Ptr, model: Ptr, ctxTokens: number, kv: number, out: Ptr): number;
  tg_session_eval(session: Ptr, tokens: Ptr, n: Ptr, logits: Ptr): number;
  tg_session_logits(session: Ptr): Ptr;
  tg_session_sample(session: Ptr, options: Ptr, index: number | bigint, token: Ptr): number;
  tg_session_set_bias(session: Ptr, bias: Ptr, n: Ptr): number;
  tg_session_set_banned(session: Ptr, texts: Ptr, n: Ptr): number;
  tg_session_set_mask(session: Ptr, mask: Ptr, user: Ptr): number;
  tg_session_set_stops(session: Ptr, texts: Ptr, n: Ptr): number;
  tg_session_best(session: Ptr, n: Ptr, ids: Ptr, logprobs: Ptr, have: Ptr): number;
  tg_session_rewind(session: Ptr, n: Ptr): number;
  tg_session_reuse(session: Ptr, tokens: Ptr, n: Ptr, same: Ptr): number;
  tg_session_tokens(session: Ptr): Ptr;
  tg_session_held(session: Ptr): Ptr;
  tg_session_capacity(session: Ptr): Ptr;
  tg_session_save(session: Ptr, path: Ptr, note: Ptr, noteBytes: Ptr): number;
  tg_session_load(session: Ptr, path: Ptr, note: Ptr, user: Ptr): number;
  tg_session_slide(session: Ptr): number;
  tg_generation_init(options: Ptr, structBytes: Ptr): void;
  tg_session_continue(session: Ptr, what: Ptr, stats: Ptr): number;
  tg_batch_new(
    ctx: Ptr, model: Ptr, nSessions: Ptr, ctxTokens: number, kv: number, out: Ptr,
  ): number;
  tg_batch_free(batch: Ptr): void;
  tg_batch_session(batch: Ptr, i: Ptr): Ptr;
  tg_batch_eval(batch: Ptr, entries: Ptr, n: Ptr): number;
  tg_batch_copy(batch: Ptr, to: Ptr, from: Ptr): number;
  tg_batch_continue(batch: Ptr, what: Ptr, n: Ptr, stats: Ptr, statuses: Ptr): number;
  tg_probe_new(ctx: Ptr, model: Ptr, nTokens: Ptr, out: Ptr): number;
  tg_probe_free(probe: Ptr): void;
  tg_probe_run(probe: Ptr, tokens: Ptr, edits: Ptr, nEdits: Ptr, donor: Ptr): number;
  tg_probe_attention(probe: Ptr, layer: number, head: number): Ptr;
  tg_probe_lens(probe: Ptr, layer: number): Ptr;
  tg_job_poll(job: Ptr, budgetMs: number): number;
  tg_job_free(job: Ptr): void;
  tg_model_new_job(ctx: Ptr, config: Ptr, seed: number | bigint, out: Ptr, job: Ptr): number;
  tg_model_new_vocabulary_job(
    ctx: Ptr, config: Ptr, tokenizer: Ptr, seed: number | bigint, out: Ptr, job: Ptr,
  ): number;
  tg_model_open_job(ctx: Ptr, path: Ptr, out: Ptr, job: Ptr): number;
  tg_model_open_floats_job(ctx: Ptr, path: Ptr, out: Ptr, job: Ptr): number;
  tg_model_save_job(model: Ptr, path: Ptr, kind: number, job: Ptr): number;
  tg_stories_job(
    ctx: Ptr, seed: number | bigint, nBytes: number | bigint, write: Ptr, user: Ptr, job: Ptr,
  ): number;
  tg_text_lint_job(
    text: Ptr, ctxTokens: number, valFraction: number, report: Ptr, user: Ptr, job: Ptr,
  ): number;
  tg_tokenizer_train_job(
    text: Ptr, kind: Ptr, nTokens: Ptr, write: Ptr, user: Ptr, job: Ptr,
  ): number;
  tg_text_sha256_job(text: Ptr, digest: Ptr, job: Ptr): number;
  tg_forecast_run_job(ctx: Ptr, config: Ptr, text: Ptr, options: Ptr, out: Ptr, job: Ptr): number;
  tg_trainer_new_job(ctx: Ptr, model: Ptr, text: Ptr, options: Ptr, out: Ptr, job: Ptr): number;
  tg_trainer_open_job(
    ctx: Ptr, path: Ptr, text: Ptr, steps: number | bigint, out: Ptr, job: Ptr,
  ): number;
  tg_trainer_step_job(trainer: Ptr, out: Ptr, job: Ptr): number;
  tg_trainer_eval_job(trainer: Ptr, loss: Ptr, job: Ptr): number;
  tg_trainer_save_job(trainer: Ptr, path: Ptr, job: Ptr): number;
  tg_trainer_save_best_job(trainer: Ptr, path: Ptr, job: Ptr): number;
  tg_session_eval_job(session: Ptr, tokens: Ptr, n: Ptr, job: Ptr): number;
  tg_session_slide_job(session: Ptr, job: Ptr): number;
  tg_session_continue_job(session: Ptr, what: Ptr, stats: Ptr, job: Ptr): number;
  tg_batch_eval_job(batch: Ptr, entries: Ptr, n: Ptr, job: Ptr): number;
  tg_batch_continue_job(batch: Ptr, what: Ptr, n: Ptr, stats: Ptr, statuses: Ptr, job: Ptr): number;
  tg_probe_run_job(probe: Ptr, tokens: Ptr, edits: Ptr, nEdits: Ptr, donor: Ptr, job: Ptr): number;
  tg_model_eval_job(
    ctx: Ptr, model: Ptr, text: Ptr, valFraction: number, evalWindows: number, loss: Ptr, job: Ptr,
  ): number;
  tg_embedder_run_job(embedder: Ptr, texts: Ptr, n: Ptr, out: Ptr, job: Ptr): number;
  tg_file_check_job(ctx: Ptr, path: Ptr, job: Ptr): number;
  tg_model_convert_job(ctx: Ptr, pathIn: Ptr, pathOut: Ptr, kind: number, job: Ptr): number;
  tg_isa_count(): Ptr;
  tg_isa_at(i: Ptr): Ptr;
  tg_lever_count(): Ptr;
  tg_lever_at(i: Ptr): Ptr;
  tg_context_lever(ctx: Ptr, name: Ptr): boolean;
  tg_machine(ctx: Ptr, out: Ptr): number;
  tg_measure_peak(ctx: Ptr, gflops: Ptr): number;
  tg_measure_peak_job(ctx: Ptr, gflops: Ptr, job: Ptr): number;
  tg_measure_read(ctx: Ptr, nBytes: Ptr, bytesPerS: Ptr): number;
  tg_context_gpu(ctx: Ptr, out: Ptr): number;
  tg_context_rest(ctx: Ptr): number;
  tg_context_rest_job(ctx: Ptr, job: Ptr): number;
  tg_measure_gpu(ctx: Ptr, bytesPerS: Ptr, gflops: Ptr): number;
  tg_measure_gpu_job(ctx: Ptr, bytesPerS: Ptr, gflops: Ptr, job: Ptr): number;
  tg_bench_matmul(
    ctx: Ptr, m: number, n: number, k: number, trans: number, nTimes: Ptr, ms: Ptr,
  ): number;
  tg_check_kernels(ctx: Ptr, filter: Ptr, report: Ptr, user: Ptr, nFailed: Ptr): number;
  tg_check_kernels_job(
    ctx: Ptr, filter: Ptr, report: Ptr, user: Ptr, nFailed: Ptr, job: Ptr,
  ): number;
  tg_dump(ctx: Ptr, config: Ptr, which: Ptr, batch: number, write: Ptr, user: Ptr): number;
  tg_model_dump(model: Ptr, which: Ptr, batch: number, write: Ptr, user: Ptr): number;
  tg_trainer_profile(trainer: Ptr, nSteps: number, each: number, report: Ptr, user: Ptr): number;
  tg_session_profile(
    session: Ptr, nRows: Ptr, nTimes: number, each: number, report: Ptr, user: Ptr,
  ): number;
  tg_wasm_machine_set(memoryMaxBytes: number, cpus: number): void;
  tg_wasm_alloc(bytes: Ptr): Ptr;
  tg_wasm_free(ptr: Ptr, bytes: Ptr): void;
  tg_wasm_file_put(name: Ptr, bytes: Ptr, nBytes: Ptr): number;
  tg_wasm_file_remove(name: Ptr): boolean;
  tg_wasm_stories_set(text: Ptr): void;
  tg_wasm_cases_set(bytes: Ptr, nBytes: Ptr): number;
  tg_wasm_thread_new(): Ptr;
  tg_wasm_thread_main(self: Ptr): void;
  tg_wasm_thread_died(self: Ptr): void;
  tg_wasm_on_text(): Ptr;
  tg_wasm_on_token(): Ptr;
  tg_wasm_on_room(): Ptr;
  tg_wasm_on_mask(): Ptr;
  tg_wasm_on_cancel(): Ptr;
  tg_wasm_on_log(): Ptr;
  tg_wasm_on_lint(): Ptr;
  tg_wasm_on_check(): Ptr;
  tg_wasm_on_profile(): Ptr;
  tg_wasm_on_progress(): Ptr;
}

/** Functions that the module imports from `tinygpt`. */
export const IMPORTS = {
  now_ms: 'd:',
  unix_s: 'd:',
  assert_failed: 'v:pip',
  file_open: 'i:p',
  file_size: 'd:i',
  file_read: 'p:idpp',
  file_close: 'v:i',
  save_begin: 'i:p',
  save_write: 'i:ipp',
  save_end: 'i:iii',
  gpu_open: 'i:p',
  gpu_close: 'v:u',
  gpu_text: 'v:uppp',
  gpu_number: 'd:up',
  gpu_message: 'v:upp',
  gpu_settle: 'i:u',
  gpu_wait: 'i:u',
  gpu_buffer_new: 'u:updb',
  gpu_buffer_free: 'v:uu',
  gpu_write: 'i:uudpp',
  gpu_read_begin: 'u:upp',
  gpu_read_end: 'i:uupp',
  gpu_pipeline_new: 'u:upppu',
  gpu_group_new: 'u:uup',
  gpu_group_free: 'v:uu',
  gpu_submit: 'i:upp',
  on_text: 'i:ppp',
  on_token: 'i:pp',
  on_room: 'p:ppp',
  on_mask: 'v:pppp',
  on_cancel: 'i:p',
  on_log: 'v:pip',
  on_lint: 'v:pp',
  on_check: 'v:pp',
  on_profile: 'v:pp',
  on_progress: 'v:pp',
} as const;

export interface Imports {
  now_ms(): number;
  unix_s(): number;
  assert_failed(file: Ptr, line: number, condition: Ptr): void;
  file_open(name: Ptr): number;
  file_size(handle: number): number;
  file_read(handle: number, offset: number, to: Ptr, nBytes: Ptr): Ptr;
  file_close(handle: number): void;
  save_begin(path: Ptr): number;
  save_write(handle: number, bytes: Ptr, nBytes: Ptr): number;
  save_end(handle: number, commit: number, keepPrevious: number): number;
  gpu_open(gpu: Ptr): number;
  gpu_close(gpu: number): void;
  gpu_text(gpu: number, name: Ptr, to: Ptr, room: Ptr): void;
  gpu_number(gpu: number, name: Ptr): number;
  gpu_message(gpu: number, to: Ptr, room: Ptr): void;
  gpu_settle(gpu: number): number;
  gpu_wait(gpu: number): number;
  gpu_buffer_new(gpu: number, label: Ptr, nBytes: number, uniform: boolean): number;
  gpu_buffer_free(gpu: number, buffer: number): void;
  gpu_write(gpu: number, buffer: number, offset: number, bytes: Ptr, nBytes: Ptr): number;
  gpu_read_begin(gpu: number, pieces: Ptr, n: Ptr): number;
  gpu_read_end(gpu: number, reading: number, pieces: Ptr, n: Ptr): number;
  gpu_pipeline_new(gpu: number, label: Ptr, wgsl: Ptr, entry: Ptr, nStorage: number): number;
  gpu_group_new(gpu: number, pipeline: number, ranges: Ptr): number;
  gpu_group_free(gpu: number, group: number): void;
  gpu_submit(gpu: number, dispatches: Ptr, n: Ptr): number;
  on_text(user: Ptr, bytes: Ptr, nBytes: Ptr): number;
  on_token(user: Ptr, token: Ptr): number;
  on_room(user: Ptr, nMade: Ptr, ids: Ptr): Ptr;
  on_mask(user: Ptr, tokens: Ptr, n: Ptr, allowed: Ptr): void;
  on_cancel(user: Ptr): number;
  on_log(user: Ptr, level: number, text: Ptr): void;
  on_lint(user: Ptr, finding: Ptr): void;
  on_check(user: Ptr, check: Ptr): void;
  on_profile(user: Ptr, row: Ptr): void;
  on_progress(user: Ptr, report: Ptr): void;
}
