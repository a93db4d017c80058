#if DEBUG
    import Glibc
    import Synchronization
    public import Testing

    /// Threads for tests that wait for processes or compute for long. The few threads that all tasks share stay free
    /// for tests that continue by events: otherwise nothing else of the process continues during such a test, and tests
    /// with a time limit fail.
    final class BlockingPool: TaskExecutor {
        static let shared = BlockingPool(threads: max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN))))

        /// `@unchecked`: made once; the condition and its lock are the C library's, and guard `jobs`.
        private final class Queue: @unchecked Sendable {
            private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
            private let hasJob = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
            private var jobs = [UnownedJob]()

            init() {
                pthread_mutex_init(lock, nil)
                pthread_cond_init(hasJob, nil)
            }

            func append(_ job: UnownedJob) {
                pthread_mutex_lock(lock)
                jobs.append(job)
                pthread_cond_signal(hasJob)
                pthread_mutex_unlock(lock)
            }

            func next() -> UnownedJob {
                pthread_mutex_lock(lock)
                defer { pthread_mutex_unlock(lock) }
                while jobs.isEmpty { pthread_cond_wait(hasJob, lock) }
                return jobs.removeFirst()
            }
        }

        private let queue = Queue()

        private init(threads: Int) {
            var attributes = pthread_attr_t()
            pthread_attr_init(&attributes)
            // Parsers and encoders of test data are recursive.
            pthread_attr_setstacksize(&attributes, 16 << 20)
            for _ in 0..<threads {
                var thread = pthread_t()
                pthread_create(
                    &thread, &attributes,
                    { context in
                        if let context { Unmanaged<BlockingPool>.fromOpaque(context).takeUnretainedValue().work() }
                        return nil
                    }, Unmanaged.passRetained(self).toOpaque())
                pthread_detach(thread)
            }
        }

        func enqueue(_ job: consuming ExecutorJob) { queue.append(UnownedJob(job)) }

        private func work() {
            while true { queue.next().runSynchronously(on: asUnownedTaskExecutor()) }
        }
    }

    /// For a suite or a test whose body blocks its thread.
    public struct Blocking: SuiteTrait, TestTrait, TestScoping {
        public let isRecursive = true

        public func provideScope(
            for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
        ) async throws {
            try await withTaskExecutorPreference(BlockingPool.shared) { try await function() }
        }
    }

    extension Trait where Self == Blocking {
        /// The test waits for processes, or computes for long: it runs on the pool's threads.
        public static var blocking: Self { Blocking() }
    }
#endif
