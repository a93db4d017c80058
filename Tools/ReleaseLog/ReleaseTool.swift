import ThicketCommandLine
import ThicketCrypto
import ThicketPlatform
import ThicketRelease

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The commands of `thicket-release`.
enum ReleaseTool {
    /// A failure with a text for the user.
    private struct Trouble: Error {
        let text: String
        init(_ text: String) { self.text = text }
    }

    @Sendable static func run(_ call: Invocation) async throws(BadValue) -> Int32 {
        do {
            switch call.command.name {
            case "key": try makeKey(call.argument("FILE") ?? "")
            case "add": try add(call)
            case "prove": try prove(call)
            default: try check(call)
            }
            return ExitCode.success.number
        } catch let error as BadValue {
            throw error
        } catch let error as Trouble {
            Terminal.writeError("thicket-release: \(error.text)\n")
        } catch {
            Terminal.writeError("thicket-release: \(error)\n")
        }
        return ExitCode.failure.number
    }

    private static func option(_ call: Invocation, _ name: String) throws -> String {
        guard let value = call.value(name), !value.isEmpty else { throw BadValue("--\(name) is missing") }
        return value
    }

    // MARK: - Commands

    private static func makeKey(_ path: String) throws {
        let seed = SecureBytes.random(Ed25519.octetsCount)
        let key = try Ed25519.SigningKey(seed: seed)
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw Trouble("\(path) cannot be made: \(reason())") }
        defer { close(file) }
        let isWritten = seed.withUnsafeBytes { write(file, $0.baseAddress, $0.count) } == seed.count
        guard isWritten, fsync(file) == 0 else { throw Trouble("\(path) cannot be written: \(reason())") }
        Terminal.write(Hex.encode(key.verifyingKey.octets) + "\n")
    }

    private static func add(_ call: Invocation) throws {
        let (path, release) = (try option(call, "log"), try option(call, "release"))
        let (commit, keyPath) = (try option(call, "commit"), try option(call, "key"))
        let key = try Ed25519.SigningKey(seed: secret(keyPath))
        let old = try Bytes.read(path, bytesMax: ReleaseLog.bytesMax) ?? []
        // Signing first checks what was signed before: a log that another writer has changed is not continued.
        var log = try ReleaseLog(file: old, key: key.verifyingKey)
        let files = try call.arguments("PROGRAM").map { try Bytes.file($0) }
        let manifest = try ReleaseManifest(release: release, commit: commit, files: files)
        var clock = timespec()
        clock_gettime(CLOCK_REALTIME, &clock)
        let time = UInt64(clock.tv_sec) * 1_000 + UInt64(clock.tv_nsec) / 1_000_000
        try Bytes.replace(path, old + log.append(manifest, key: key, time: time))
        Terminal.write("release \(release) is number \(log.manifests.count) of the log\n")
    }

    private static func prove(_ call: Invocation) throws {
        let (path, release) = (try option(call, "log"), try option(call, "release"))
        guard let proof: ReleaseProof = try log(path, key: nil).proof(of: release) else {
            throw Trouble("\(path) has no release \(release)")
        }
        guard Terminal.write(proof.file, to: Terminal.standardOutput) else {
            throw Trouble("the proof cannot be written")
        }
    }

    private static func check(_ call: Invocation) throws {
        guard let octets: [UInt8] = Hex.decode(try option(call, "public")),
            let key: Ed25519.VerifyingKey = try? .init(octets)
        else { throw BadValue("--public is 64 hex digits, as 'thicket-release key' printed them") }
        let log = try log(try option(call, "log"), key: key)
        for (manifest, head) in zip(log.manifests, log.heads) {
            Terminal.write("\(head.size)  \(manifest.release)  \(manifest.commit)  root \(head.root)\n")
        }
        Terminal.write("\(log.manifests.count) releases, every head fits and is signed\n")
    }

    // MARK: - Files

    private static func log(_ path: String, key: Ed25519.VerifyingKey?) throws -> ReleaseLog {
        guard let bytes = try Bytes.read(path, bytesMax: ReleaseLog.bytesMax) else {
            throw Trouble("there is no log \(path)")
        }
        return try ReleaseLog(file: bytes, key: key)
    }

    private static func secret(_ path: String) throws -> SecureBytes {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & 0o077 == 0 else {
            throw Trouble("\(path) is not there, or others may read it: 'chmod 600' ends that")
        }
        guard var bytes = try Bytes.read(path, bytesMax: 64), bytes.count == Ed25519.octetsCount else {
            throw Trouble("\(path) is not a signing key")
        }
        return SecureBytes(taking: &bytes)
    }

    private static func reason() -> String { String(cString: strerror(errno)) }

    /// Reads and writes whole files.
    private enum Bytes {
        /// nil: the file does not exist.
        static func read(_ path: String, bytesMax: Int) throws -> [UInt8]? {
            var bytes = [UInt8]()
            let isThere = try pieces(path) { piece in
                guard bytes.count + piece.count <= bytesMax else {
                    throw Trouble("\(path) is larger than \(bytesMax) bytes")
                }
                bytes += piece
            }
            return isThere ? bytes : nil
        }

        /// Name, SHA-256 and size of a program.
        static func file(_ path: String) throws -> ReleaseManifest.File {
            var (hash, size): (SHA256, Int64) = (.init(), 0)
            let isThere = try pieces(path) { piece in
                hash.update(UnsafeRawBufferPointer(piece))
                size += Int64(piece.count)
            }
            guard isThere, let digest = Digest256(hash.digest()) else {
                throw Trouble("there is no \(path)")
            }
            return ReleaseManifest.File(
                name: path.split(separator: "/").last.map(String.init) ?? path, digest: digest, size: size)
        }

        private static func pieces(_ path: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
            let file = open(path, O_RDONLY | O_CLOEXEC)
            guard file >= 0 else {
                if errno == ENOENT { return false }
                throw Trouble("\(path) cannot be read: \(reason())")
            }
            defer { close(file) }
            var room = [UInt8](repeating: 0, count: 1 << 20)
            while true {
                let count = systemRead(file, &room, room.count)
                guard count >= 0 else { throw Trouble("\(path) cannot be read: \(reason())") }
                guard count > 0 else { return true }
                try room.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            }
        }

        /// Atomic: after a failure the path has the old file or the new one.
        static func replace(_ path: String, _ bytes: [UInt8]) throws {
            let draft = "\(path).\(RandomBytes.hex(4))"
            let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
            guard file >= 0 else { throw Trouble("\(draft) cannot be made: \(reason())") }
            defer { unlink(draft) }
            let isWritten = Terminal.write(bytes, to: file) && fsync(file) == 0
            close(file)
            guard isWritten, rename(draft, path) == 0 else { throw Trouble("\(path) cannot be written: \(reason())") }
        }
    }
}

/// The system call, which a method named `read` would shadow.
private func systemRead(_ file: Int32, _ bytes: UnsafeMutableRawPointer, _ count: Int) -> Int {
    read(file, bytes, count)
}
