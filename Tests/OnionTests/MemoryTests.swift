import Glibc
import Testing
import ThicketClient
import ThicketCrypto
import ThicketProcesses

@testable import ThicketOnions

@Suite("Memory of a session with notes")
struct MemoryTests {
    /// Random letters that occur nowhere else in memory, written in place.
    private static func letters(_ count: Int) -> SecureBytes {
        SecureBytes(count: count) { room in
            RandomBytes.fill(room)
            for place in 0..<count { room[place] = UInt8(ascii: "a") + room[place] % 26 }
        }
    }

    private static func needle(_ secret: SecureBytes) -> MemoryScan.Needle { secret.withUnsafeBytes { .init($0) } }

    /// A session in use, and the secrets that only its memory holds.
    private static func begin(_ server: NotesServer) async throws -> (vault: Vault, needles: [MemoryScan.Needle]) {
        let (password, secret, title): (SecureBytes, SecureBytes, SecureBytes) = (
            letters(24), .random(32), letters(30)
        )
        let account = try server.account()
        let old = try await account.signUp(username: letters(20), password: password)
        let vault = try await Vault(
            old.session, keys: NoteKeys(user: old.user, password: password, vaultSecret: secret))
        _ = await old.wipe()
        let text = NoteText(title: title, info: letters(100))
        let id = try await vault.create(text)
        _ = try await vault.read(id)
        _ = try await vault.sealedCopy(of: id)
        return (vault, [needle(password), needle(secret), needle(title)])
    }

    @Test("T3: password, vault secret and texts are in memory until the session ends, and nowhere in it afterwards")
    func wiped() async throws {
        let server = try NotesServer()
        let (vault, needles) = try await Self.begin(server)
        let before = try #require(MemoryScan.hits(of: needles, in: getpid()), "our own memory can be read")
        #expect(before.allSatisfy { $0 > 0 }, "\(before)")
        await vault.end()
        let after = MemoryScan.hits(of: needles, in: getpid())
        #expect(after == [0, 0, 0])
    }
}
