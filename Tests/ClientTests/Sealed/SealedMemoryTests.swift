import Glibc
import Testing
import ThicketClient
import ThicketCrypto
import ThicketProcesses
import ThicketProtocol

/// Remains of a session with a sealed bucket in the memory of its program.
@Suite("Memory of a session with sealed buckets", .serialized, .timeLimit(.minutes(15)))
struct SealedMemoryTests {
    private static let key = "today"
    private static let names = ["vault secret", "seal key of the object", "name key's secret"]

    private static func needle(_ secret: SecureBytes) -> MemoryScan.Needle { secret.withUnsafeBytes { .init($0) } }

    /// HKDF with an empty salt, as the specification writes it.
    private static func derived(_ secret: SecureBytes, _ info: String, _ more: [UInt8] = []) throws -> SecureBytes {
        try HKDF.derive(.sha256, secret: secret, info: Array(info.utf8) + more)
    }

    private static func prefixed(_ text: String) -> [UInt8] { [0, UInt8(text.utf8.count)] + Array(text.utf8) }

    /// The keys of the bucket and of its object, derived again from the vault secret.
    private static func needles(_ account: OpenAccount) throws -> [MemoryScan.Needle] {
        let vault = account.bundle.vaultSecret
        let place = prefixed("notes") + prefixed("diary") + [0, 0, 0, 0]
        let bucket = try derived(vault, "thicket/bucket/1\0", place)
        let name = try derived(bucket, "thicket/bucket-key/1\0name")
        let code = Array(HMAC.code(.sha256, key: name, Array(key.utf8)).prefix(20))
        let seal = try derived(bucket, "thicket/bucket-key/1\0seal")
        let object = try derived(seal, "thicket/sealed-object/1\0", prefixed(Base32.encode(code)))
        return [needle(vault), needle(object), needle(name)]
    }

    /// Signs up, writes and reads; only the session keeps anything of the account.
    private static func begin(
        _ bench: AccountServer
    ) async throws -> (session: ClientSession, needles: [MemoryScan.Needle]) {
        let accounts = try bench.notes().accounts(stretch: KeyBench.weak)
        let login = try await accounts.signUp(name: "ann", password: KeyBench.secret("one"))
        let session = try await bench.notes().resume(login)
        let diary: Bucket = try await session.bucket("diary", sealed: true)
        try await diary.set(key, to: ["t": "a"])
        try await diary.waitUntilSynced(timeout: .seconds(120))
        try await diary.editText(key, path: ["t"], at: 1, inserting: "b")
        try await diary.waitUntilSynced(timeout: .seconds(120))
        return (session, try needles(login.account))
    }

    @Test(
        "T3: vault secret and sealed bucket keys are in memory while the session is open, and not once it is closed",
        arguments: [false, true])
    func wiped(signsOut: Bool) async throws {
        let bench = try AccountServer()
        let (session, needles) = try await Self.begin(bench)
        let before = try #require(MemoryScan.hits(of: needles, in: getpid()), "our own memory can be read")
        for (name, hits) in zip(Self.names, before) { #expect(hits > 0, "\(name): the search is blind") }
        if signsOut { _ = await session.signOut() }
        await session.close()
        let after = try #require(MemoryScan.hits(of: needles, in: getpid()))
        for (name, hits) in zip(Self.names, after) { #expect(hits == 0, "\(name)") }
    }
}
