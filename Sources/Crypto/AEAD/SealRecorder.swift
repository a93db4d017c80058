#if DEBUG
    import Synchronization

    #if canImport(Darwin)
        import Darwin
    #else
        import Glibc
    #endif

    /// Records the nonce of each seal in debug builds, so that tests can check that no key uses a nonce twice for
    /// different bytes, which would reveal both. Release builds do not contain it.
    package final class SealRecorder: Sendable {
        /// Seals kept; later ones are only counted.
        package static let sealsMax = 1 << 20

        /// A key and a nonce that were used for two different inputs.
        package struct Reuse: Sendable, Equatable {
            /// The first bytes of a hash of the key.
            package let keyID: [UInt8]
            package let nonce: [UInt8]
        }

        /// Names the file in which a whole test run is recorded: all its processes append to it, `recordBytes` for each
        /// seal. At the end of the run `Tests/prove` searches it for repeated pairs.
        package static let variable = "THICKET_SEALS"
        /// Bytes of a record: a hash of the key (8), the nonce (12), a hash of the sealed input (16). It contains no
        /// secret.
        package static let recordBytes = 36

        /// The recorder of the process, from its start; nil when the run is not recorded.
        package static let process: SealRecorder? = getenv(variable).map { SealRecorder(file: String(cString: $0)) }

        /// The recorder for the calls of this task; a test that seals with published keys and nonces sets its own.
        @TaskLocal package static var current: SealRecorder? = process

        private struct State {
            var inputs = [[UInt8]: [UInt8]]()
            var reuses = [Reuse]()
            var count = 0
        }

        private let state = Mutex<State>(State())

        /// Descriptor of the file for the records; nil: they are kept in memory.
        private let file: Int32?

        /// A recorder that keeps the records in memory.
        package init() { file = nil }

        /// A recorder that appends the records to a file, so that they survive a process that is killed.
        private init(file path: String) {
            let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            precondition(file >= 0, "\(Self.variable): \(path) cannot be written")
            self.file = file
        }

        /// Number of seals so far.
        package var count: Int { state.withLock(\.count) }
        /// Pairs of key and nonce that had two inputs, in order.
        package var reuses: [Reuse] { state.withLock(\.reuses) }
        /// Whether the memory is full; reuses among later seals are missed then.
        package var isFull: Bool { state.withLock { $0.inputs.count >= Self.sealsMax } }

        static func keyID(_ algorithm: AEADAlgorithm, _ key: SecureBytes) -> [UInt8] {
            var hash = SHA256()
            hash.update(Array("thicket/test/key".utf8) + [algorithm.rawValue])
            key.withUnsafeBytes { hash.update($0) }
            return Array(hash.digest().prefix(8))
        }

        static func record(
            key: [UInt8], nonce: AEADNonce, _ clear: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer
        ) {
            guard let recorder: SealRecorder = current else { return }
            var hash = SHA256()
            withUnsafeBytes(of: UInt64(data.count).bigEndian) { hash.update($0) }
            hash.update(data)
            hash.update(clear)
            recorder.record(key, nonce.octets, input: Array(hash.digest().prefix(16)))
        }

        private func record(_ key: [UInt8], _ nonce: [UInt8], input: [UInt8]) {
            if let file {
                let record = key + nonce + input
                // A single call with O_APPEND, so that the records of several threads and processes do not mix.
                precondition(write(file, record, record.count) == Self.recordBytes, "\(Self.variable): not written")
                return
            }
            state.withLock { state in
                state.count += 1
                if let before: [UInt8] = state.inputs[key + nonce] {
                    if before != input { state.reuses.append(Reuse(keyID: key, nonce: nonce)) }
                } else if state.inputs.count < Self.sealsMax {
                    state.inputs[key + nonce] = input
                }
            }
        }
    }
#endif
