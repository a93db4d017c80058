import Testing

@testable import ThicketCLI

/// What a file counts as that the file system finds although the scan has not.
@Suite("Mirrored files that a scan has not found")
struct MissingFileTests {
    private func look(_ name: String, among entries: [String], mirrored: Set<String> = []) throws -> MissingFile {
        MissingFile(try FileName(file: name), among: entries) { mirrored.contains($0) }
    }

    @Test("a file that is listed by now exists again")
    func again() throws {
        #expect(try look("plan.md", among: ["other.md", "plan.md"]) == .there)
        #expect(try look("=a%2Fb", among: ["=a%2Fb"]) == .there)
    }

    @Test("a file whose capitals were changed is gone under its old name")
    func renamed() throws {
        #expect(try look("Plan.md", among: ["plan.md"]) == .gone)
    }

    @Test("of two objects in one file the folder has lost one, which does not count as a deletion")
    func collapsed() throws {
        #expect(
            try look("Plan.md", among: ["plan.md"], mirrored: ["plan.md"])
                == .hidden("this folder does not distinguish its name from plan.md"))
        // The spelling of an accent, which some file systems change.
        let (composed, apart) = ("caf\u{E9}.md", "cafe\u{301}.md")
        let key = try FileName(file: apart).key
        #expect(
            try look(composed, among: [apart], mirrored: [key])
                == .hidden("this folder does not distinguish its name from \(apart)"))
        #expect(try look(composed, among: [apart]) == .gone)
    }

    @Test("a file that exists without being listed does not count as deleted")
    func unlisted() throws {
        #expect(try look("plan.md", among: []) == .hidden("the folder does not list it, and has it nevertheless"))
    }
}
