import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketClient

@Suite("What a channel counts")
struct ChannelTests {
    @Test("how many edits were refused is what the two sets have in common, whatever becomes of the objects")
    func refusedEdits() throws {
        var random: any RandomNumberGenerator = SeededRandom(seed: 8)
        var channel: Channel = Channel(record: BucketRecord(name: try BucketName("notes")))
        var most: Int = 0
        for _ in 0..<500 {
            let flags: UInt64 = random.next()
            channel.note(
                EditedKey(
                    key: try EntityKey("k\(flags >> 8 & 7)"), hasEdits: flags & 1 != 0, isRefused: flags & 2 != 0,
                    isStale: flags & 4 != 0))
            #expect(channel.refusedEdits == channel.edited.intersection(channel.refused).count)
            most = max(most, channel.refusedEdits)
        }
        #expect(most > 1)
        channel.forgetNotes()
        #expect(channel.refusedEdits == 0 && channel.edited.isEmpty && channel.stale.isEmpty)
    }
}
