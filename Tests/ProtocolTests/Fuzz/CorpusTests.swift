import Foundation
import Testing
import ThicketFuzz
import ThicketNonces

// Targets choose their keys and nonces themselves, again for each input.
@Suite("Corpus of the fuzzer", .noncesGiven) struct CorpusTests {
    /// `Tools/Fuzz/Corpus` of this checkout.
    static let corpus = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Tools/Fuzz/Corpus")

    @Test(
        "every target runs its corpus, each input in full and cut short anywhere",
        arguments: FuzzTargets.all.map(\.name))
    func replay(_ name: String) throws {
        let target = try #require(FuzzTargets.all.first { $0.name == name })
        let files = try FileManager.default.contentsOfDirectory(
            at: Self.corpus.appendingPathComponent(name), includingPropertiesForKeys: nil)
        #expect(!files.isEmpty, "a target without a corpus is not fuzzed from anywhere")
        for file in files {
            let bytes = try [UInt8](Data(contentsOf: file))
            target.run(bytes)
            // Larger inputs at some places only, so that debug builds stay quick.
            for length in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 64)) {
                target.run(Array(bytes[..<length]))
            }
        }
    }

    @Test("every corpus belongs to a target, and no two targets share a name")
    func named() throws {
        let names = FuzzTargets.all.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(Set(try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path)).isSubset(of: names))
    }
}
