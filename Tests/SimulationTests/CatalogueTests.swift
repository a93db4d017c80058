import Glibc
import Testing
import ThicketSimulation

@Suite("Catalogue of faults and mutants")
struct CatalogueTests {
    /// `docs/SIMULATION.md`, found from where this file stands.
    private static let lines: Set<String> = {
        let folder: Substring = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")[...]
        guard let file: UnsafeMutablePointer<FILE> = fopen("/\(folder)/docs/SIMULATION.md", "r") else { return [] }
        defer { fclose(file) }
        var (line, room, lines): (UnsafeMutablePointer<CChar>?, Int, Set<String>) = (nil, 0, [])
        defer { free(line) }
        while getline(&line, &room, file) > 0, let line { lines.insert(String(cString: line).filter { $0 != "\n" }) }
        return lines
    }()

    @Test("every fault stands in SIMULATION.md with its words", arguments: Fault.allCases)
    func fault(fault: Fault) {
        let row: String = "| `\(fault.name)` | \(fault.summary) |"
        #expect(Self.lines.contains(row), "docs/SIMULATION.md lacks this row:\n\(row)")
    }

    @Test("every mutant stands in SIMULATION.md", arguments: Mutant.allCases)
    func mutant(mutant: Mutant) {
        #expect(Self.lines.contains { $0.hasPrefix("| `\(mutant.rawValue)` | ") })
    }

    @Test("SIMULATION.md tells of no fault and no mutant that there is not")
    func nothingElse() {
        let names: Set<String> = Set(Fault.allCases.map(\.name) + Mutant.allCases.map(\.rawValue))
        for line: String in Self.lines where line.hasPrefix("| `") && !line.hasPrefix("| `./dev") {
            let name: Substring = line.dropFirst(3).prefix { $0 != "`" }
            #expect(names.contains(String(name)), "docs/SIMULATION.md tells of '\(name)'")
        }
    }
}
