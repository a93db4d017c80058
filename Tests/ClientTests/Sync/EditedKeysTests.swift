import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketClient

@Suite("Which objects have edits")
struct EditedKeysTests {
    @Test("how many edits were refused is what the two sets have in common, whatever becomes of the objects")
    func refusedEdits() throws {
        var random: any RandomNumberGenerator = SeededRandom(seed: 8)
        var keys = EditedKeys()
        var most: Int = 0
        for _ in 0..<500 {
            let flags: UInt64 = random.next()
            keys.update(
                EditedKey(
                    key: try EntityKey("k\(flags >> 8 & 7)"), hasEdits: flags & 1 != 0, isRefused: flags & 2 != 0,
                    isStale: flags & 4 != 0))
            #expect(keys.refusedEdits == keys.edited.intersection(keys.refused).count)
            most = max(most, keys.refusedEdits)
        }
        #expect(most > 1)
    }
}
