"""How public functions are called: what every floor needs to take arguments and to offer names.

- `arguments` checks each argument against its annotation, and raises PolicyError:

      @checked_arguments
      def probe(paths: Paths, column: str, ...) -> ProbeReport: ...

- `signatures` lets a function take one request, a dataclass, and be called with its fields.
- `options` has the options of a filter, and the words that more than one room uses for them.
- `lazy_names` imports the public names of a package when they are first used.
"""
