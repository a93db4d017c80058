#if DEBUG
    import Synchronization

    #if canImport(Darwin)
        import Darwin
    #else
        import Glibc
    #endif

    /// What was sealed under which nonce, in debug builds: tests ask whether a key has seen a nonce twice for different
    /// bytes, by which both would be lost. Release builds have nothing of it.
    package final class SealRecorder: Sendable {
        /// Seals kept; later ones are counted only.
        package static let sealsMax = 1 << 20

        /// A key and a nonce that were used for two things.
        package struct Reuse: Sendable, Equatable {
            /// The first bytes of a hash of the key.
            package let keyID: [UInt8]
            package let nonce: [UInt8]
        }

        /// Where a whole run is recorded: all processes of it append to one file, `recordBytes` for each seal.
        /// `Tests/prove` looks for pairs that came twice at its end.
        package static let variable = "THICKET_SEALS"
        /// Bytes of a record: a hash of the key (8), the nonce (12), a hash of what was sealed (16). No secret is in
        /// it.
        package static let recordBytes = 36

        /// Of the whole process, from its start; nil when no run is recorded.
        package static let process: SealRecorder? = getenv(variable).map { SealRecorder(file: String(cString: $0)) }

        /// Where the calls of this task are recorded instead: a test that seals with published keys and nonces has its
        /// own.
        @TaskLocal package static var current: SealRecorder? = process

        private struct State {
            var inputs = [[UInt8]: [UInt8]]()
            var reuses = [Reuse]()
            var count = 0
        }

        private let state = Mutex<State>(State())

        /// Descriptor of the file that records go to; nil: they are kept here.
        private let file: Int32?

        /// Keeps what is recorded.
        package init() { file = nil }

        /// Appends what is recorded to a file, so that it outlives a process that is killed.
        private init(file path: String) {
            let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            precondition(file >= 0, "\(Self.variable): \(path) cannot be written")
            self.file = file
        }

        /// Seals so far.
        package var count: Int { state.withLock(\.count) }
        /// Pairs of key and nonce that had two inputs, in their order.
        package var reuses: [Reuse] { state.withLock(\.reuses) }
        /// Whether there were more seals than are kept: then a reuse may have been missed.
        package var isFull: Bool { state.withLock { $0.inputs.count >= Self.sealsMax } }

        static func keyID(_ algorithm: AEADAlgorithm, _ key: SecureBytes) -> [UInt8] {
            var hash = SHA256()
            hash.update(Array("thicket/test/key".utf8) + [algorithm.rawValue])
            key.withUnsafeBytes { hash.update($0) }
            return Array(hash.digest().prefix(8))
        }

        static func note(
            key: [UInt8], nonce: AEADNonce, _ clear: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer
        ) {
            guard let recorder: SealRecorder = current else { return }
            var hash = SHA256()
            withUnsafeBytes(of: UInt64(data.count).bigEndian) { hash.update($0) }
            hash.update(data)
            hash.update(clear)
            recorder.note(key, nonce.octets, input: Array(hash.digest().prefix(16)))
        }

        private func note(_ key: [UInt8], _ nonce: [UInt8], input: [UInt8]) {
            if let file {
                let record = key + nonce + input
                // In one call, and behind what other threads and processes have written (O_APPEND).
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
