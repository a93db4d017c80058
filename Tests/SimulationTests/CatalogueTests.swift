import Glibc
import Testing
import ThicketSimulation

@Suite("Catalogue of faults and mutants")
struct CatalogueTests {
    /// The lines of `docs/SIMULATION.md`.
    private static let lines: Set<String> = {
        let folder: Substring = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")[...]
        guard let file: UnsafeMutablePointer<FILE> = fopen("/\(folder)/docs/SIMULATION.md", "r") else { return [] }
        defer { fclose(file) }
        var (line, room, lines): (UnsafeMutablePointer<CChar>?, Int, Set<String>) = (nil, 0, [])
        defer { free(line) }
        while getline(&line, &room, file) > 0, let line { lines.insert(String(cString: line).filter { $0 != "\n" }) }
        return lines
    }()

    @Test("SIMULATION.md lists every fault with its summary", arguments: Fault.allCases)
    func fault(fault: Fault) {
        let row = "| `\(fault.name)` | \(fault.summary) |"
        #expect(Self.lines.contains(row), "docs/SIMULATION.md lacks this row:\n\(row)")
    }

    @Test("SIMULATION.md lists every mutant", arguments: Mutant.allCases)
    func mutant(mutant: Mutant) {
        #expect(Self.lines.contains { $0.hasPrefix("| `\(mutant.rawValue)` | ") })
    }

    @Test("SIMULATION.md lists no fault and no mutant that does not exist")
    func nothingElse() {
        let names = Set(Fault.allCases.map(\.name) + Mutant.allCases.map(\.rawValue))
        for line in Self.lines where line.hasPrefix("| `") && !line.hasPrefix("| `./dev") {
            let name: Substring = line.dropFirst(3).prefix { $0 != "`" }
            #expect(names.contains(String(name)), "docs/SIMULATION.md tells of '\(name)'")
        }
    }
}
