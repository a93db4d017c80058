import ThicketCommandLine
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketRelease

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// `thicket verify-release`: checks that programs belong to a release that the release log contains.
enum VerifyReleaseCommand {
    static func run(_ call: Call) throws(Failure) {
        let paths = call.arguments("FILE")
        let proofPath = call.value("proof") ?? folder(of: paths.first ?? "") + "release.json"
        let home = try ProfileHome(call.environment)
        let known = try KnownReleases(home: home.path)
        let key = try key(call, known)
        let proof = try proof(proofPath)
        try checking(proofPath) { () throws(ReleaseError) in try proof.check(key, seen: known.head) }
        // The verified head is stored now, whether or not the programs match.
        try known.keep(key, proof.head, home: home.path)
        let manifest = proof.manifest
        for path in paths {
            let (digest, size) = try fingerprint(path)
            let file = try checking(path) { () throws(ReleaseError) in
                try manifest.file(digest: digest, size: size)
            }
            Terminal.write("\(path): \(file.name) of release \(manifest.release), commit \(manifest.commit)\n")
        }
        let before =
            known.head.map { "; it goes on from the \($0.size) seen before" } ?? "; it is the first seen here"
        Terminal.write(
            "release \(manifest.release) is number \(proof.index + 1) of \(proof.head.size) in the log, signed "
                + "\(Days.text(Int64(proof.head.time / 1_000))) by \(Hex.encode(key.octets).prefix(16))…\(before)\n")
    }

    private static func folder(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
    }

    private static func checking<Value>(
        _ what: String, _ body: () throws(ReleaseError) -> Value
    ) throws(Failure) -> Value {
        do { return try body() } catch { throw Failure("\(what): \(error)") }
    }

    /// The key that is used: the one stored on this machine at the first use, or, the first time, the one that the call
    /// names.
    private static func key(_ call: Call, _ known: KnownReleases) throws(Failure) -> Ed25519.VerifyingKey {
        guard let given = call.setting("release-key") else {
            guard let kept = known.key else {
                throw Failure(
                    "whose log? --release-key HEX names the key the first time; get it from where you do not get the "
                        + "programs. It is kept, and no other is taken afterwards.", .usage)
            }
            return kept
        }
        guard let octets = Hex.decode(given), octets.count == Ed25519.octetsCount,
            let key: Ed25519.VerifyingKey = try? .init(octets)
        else { throw Failure("--release-key is 64 hex digits, not '\(given)'", .usage) }
        guard known.key.map({ $0 == key }) ?? true else {
            throw Failure(
                "another key was used here before: \(Hex.encode(known.key?.octets ?? [])). If the maintainers have "
                    + "said that they have a new one, remove \(known.path); if not, this is an attack")
        }
        return key
    }

    private static func proof(_ path: String) throws(Failure) -> ReleaseProof {
        switch Files.read(path, bytesMax: ReleaseProof.bytesMax) {
        case .absent:
            throw Failure("there is no proof \(path): it comes with the release; --proof FILE names it", .notFound)
        case .failed(let reason): throw Failure("the proof \(path) cannot be read: \(reason)")
        case .bytes(let bytes):
            return try checking(path) { () throws(ReleaseError) in try ReleaseProof(file: bytes) }
        }
    }

    private static func fingerprint(_ path: String) throws(Failure) -> (Digest256, Int64) {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            throw Failure("\(path) cannot be read: \(Files.reason())", errno == ENOENT ? .notFound : .failure)
        }
        defer { close(file) }
        var (hash, size): (SHA256, Int64) = (.init(), 0)
        var room = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = systemRead(file, &room, room.count)
            guard count >= 0 else { throw Failure("\(path) cannot be read: \(Files.reason())") }
            guard count > 0 else { break }
            room.withUnsafeBytes { hash.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            size += Int64(count)
        }
        guard let digest = Digest256(hash.digest()) else { throw Failure("\(path) has no digest") }
        return (digest, size)
    }
}

/// The key and the newest head that this machine has seen: `$THICKET_HOME/releases.json`.
struct KnownReleases: Sendable {
    let path: String
    private(set) var key: Ed25519.VerifyingKey?
    private(set) var head: ReleaseHead?

    init(home: String) throws(Failure) {
        path = home + "/releases.json"
        switch Files.read(path, bytesMax: 1 << 16) {
        case .absent: break
        case .failed(let reason): throw Failure("\(path) cannot be read: \(reason)")
        case .bytes(let bytes):
            let value = try? JSONValue(parsing: bytes)
            guard let octets = value?["key"]?.stringValue.flatMap(Hex.decode),
                let key: Ed25519.VerifyingKey = try? .init(octets), let head: ReleaseHead = try? .init(value?["head"])
            else {
                throw Failure(
                    "\(path) is damaged. Without it this machine does not know which log it saw before: a copy of it "
                        + "helps; else remove it, and begin again with --release-key")
            }
            (self.key, self.head) = (key, head)
        }
    }

    /// Stores a verified head, unless a newer one is known.
    func keep(_ key: Ed25519.VerifyingKey, _ head: ReleaseHead, home: String) throws(Failure) {
        if let known = self.head, known.size >= head.size { return }
        try Files.makeFolder(home)
        let object: JSONObject = ["key": .string(Hex.encode(key.octets)), "head": head.json]
        try Files.replace(path, Pretty.bytes(.object(object)), mode: 0o600, isDurable: true)
    }
}

/// The system call, which a method named `read` would shadow.
private func systemRead(_ file: Int32, _ bytes: UnsafeMutableRawPointer, _ count: Int) -> Int {
    read(file, bytes, count)
}
