import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketClient

@Suite("Set of edited objects")
struct EditedKeysTests {
    @Test("the number of refused edits is the size of the intersection of both sets, after any update")
    func refusedEdits() throws {
        var random: any RandomNumberGenerator = SeededRandom(seed: 8)
        var keys = EditedKeys()
        var most = 0
        for _ in 0..<500 {
            let flags = random.next()
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
